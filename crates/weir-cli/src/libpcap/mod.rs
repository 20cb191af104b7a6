//! Our libpcap for programs that link it: `weir libpcap` installs it, `weir run` runs a program with it.

mod install;
mod library;
mod names;
mod program;
mod run;

pub(crate) use install::{LibpcapArgs, install};
pub(crate) use run::{RunArgs, run};
