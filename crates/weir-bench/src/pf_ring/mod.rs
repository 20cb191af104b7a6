//! The experiments of PF_RING's user guide, on a stock kernel.

pub(crate) mod counters;
mod readers;
