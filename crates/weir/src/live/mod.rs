//! Capturing from interfaces: everything that needs the eBPF programs of `weir-bpf`.

pub(crate) mod bpffs;
pub(crate) mod capture;
pub(crate) mod error;
pub(crate) mod filter_control;
mod flow;
pub(crate) mod guard;
pub(crate) mod handlers;
pub(crate) mod interface;
pub(crate) mod merge;
pub(crate) mod namespace;
pub(crate) mod request;
pub(crate) mod ruled;
pub(crate) mod rules;
pub(crate) mod settings;
pub(crate) mod side_by_side;
pub(crate) mod source;
pub(crate) mod statistics;
pub(crate) mod wait;
pub(crate) mod who;
