//! What programs say to each other.

mod aoe;
mod dhcp;
pub(crate) mod dns;
pub(crate) mod nfs;
mod ntp;
mod openflow;
mod ptp;
mod radius;
mod resp;
mod rtp;
mod rx;
mod sflow;
mod snmp;
mod syslog;
mod telnet;
pub(crate) mod textual;
mod tftp;
mod zmtp;
