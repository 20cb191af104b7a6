//! The programs that capture, one for each source.

pub mod af_xdp;
pub mod tc;
pub mod xdp;
