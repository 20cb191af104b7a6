//! What the tests of all crates have in common. It is below all of them and depends on none.

#![forbid(unsafe_code)]

pub mod skip;
