//! The experiments of WireCAP (IMC 2014), section 4, on what a stock kernel has, and on machines that are simulated.

pub(super) mod bursts;
mod contestants;
pub(super) mod imbalance;
mod pace;
mod rings;
pub(super) mod scaling;
pub(super) mod simulate;
mod trace;
