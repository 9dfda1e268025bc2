//! Names of files and directories.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone::segment::FileName;
use siltstone::segment::name::Parsed;

fuzz_target!(|name: &str| {
    if let Parsed::Segment(file) = FileName::parse(name) {
        assert!(file.offset >= 0);
        assert_eq!(FileName::parse(&file.format()), Parsed::Segment(file));
    }
});
