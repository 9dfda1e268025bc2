//! Names of files, directories and objects.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone::segment::FileName;
use siltstone::segment::name::Parsed;
use siltstone::tier::ObjectLayout;

fuzz_target!(|name: &str| {
    if let Parsed::Segment(file) = FileName::parse(name) {
        assert!(file.offset >= 0);
        assert_eq!(FileName::parse(&file.format()), Parsed::Segment(file));
    }
    for layout in [ObjectLayout::default(), ObjectLayout::with_prefix("")] {
        if let Some((id, start_offset, part)) = layout.parse(name) {
            let written = layout.name(&id, start_offset, part);
            assert_eq!(layout.parse(&written), Some((id, start_offset, part)));
        }
    }
});
