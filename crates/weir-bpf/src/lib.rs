//! eBPF programs, written in C and compiled when the crate is built, and their typed loaders.
//!
//! A loader sets the constants of one capture, lets the verifier look at the program, and keeps only descriptors: a
//! program lives as long as somebody holds it or it is attached, a map as long as somebody holds or uses it.

mod log;

pub mod lab;
pub mod tag;
pub mod xdp;
pub mod xsk;

pub use log::LoadError;
