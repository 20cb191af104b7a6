//! Our libpcap for programs that link it: `weir libpcap` installs it.

mod install;
mod library;
mod names;

pub(crate) use install::{LibpcapArgs, install};
