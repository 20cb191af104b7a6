//! What switches say to each other, and stations to switches.

mod cdp;
mod ctp;
mod lldp;
mod mpcp;
mod slow;
mod stp;
mod udld;
