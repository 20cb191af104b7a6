//! Capturing from interfaces: everything that needs the eBPF programs of `weir-bpf`.

pub(crate) mod bell;
pub(crate) mod builder;
pub(crate) mod capture;
pub(crate) mod choose;
pub mod command;
pub(crate) mod error;
pub(crate) mod error_kind;
pub(crate) mod event;
pub(crate) mod exchange;
pub(crate) mod handlers;
pub(crate) mod interface;
pub(crate) mod memory;
pub(crate) mod merge;
pub(crate) mod namespace;
pub(crate) mod observer;
pub(crate) mod opened;
pub(crate) mod outlet;
pub(crate) mod patience;
pub(crate) mod peer;
pub(crate) mod port;
pub(crate) mod ports;
pub mod probe;
pub(crate) mod queues;
pub(crate) mod request;
pub(crate) mod sets;
pub(crate) mod setting;
pub(crate) mod settings;
#[cfg(test)]
pub(crate) mod simulated;
pub(crate) mod site;
pub(crate) mod size;
pub(crate) mod source;
pub(crate) mod steering;
pub(crate) mod stop;
pub(crate) mod waker;
pub(crate) mod warning;
