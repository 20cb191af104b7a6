//! The experiments of WireCAP (IMC 2014), section 4, on what a stock kernel has.

pub(super) mod bursts;
pub(super) mod imbalance;
mod pace;
mod rings;
mod trace;
