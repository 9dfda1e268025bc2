//! The C ABI from outside: the header as strict compilers see it, its structs and functions against
//! the library's, and C programs that call every function, rightly and wrongly.
//!
//! Needs a C and a C++ compiler.

mod cases;
mod header;
mod packaging;
mod programs;
mod sanitizers;
mod signatures;
mod table;
