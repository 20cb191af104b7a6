//! The transport layer.

mod mptcp;
mod pgm;
mod sctp;
mod tcp;
mod tcp_options;
mod udp;
