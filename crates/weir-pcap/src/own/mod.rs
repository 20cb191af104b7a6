//! Extensions that libpcap does not have: `weir/extensions.h` describes them for C.

pub mod burst;
pub mod counts;
pub mod filter;
