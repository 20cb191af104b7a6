//! The network layer.

mod arp;
mod icmp;
mod icmp6;
mod igmp;
pub(crate) mod ip;
mod ip4;
mod ip4_options;
mod ip6;
mod redundancy;
