//! The real binary, run as users run it.
#![forbid(unsafe_code)]

mod arguments;
mod capture;
mod confine;
mod count;
mod demo;
mod devices;
mod files;
mod doctor;
mod harness;
mod metrics;
