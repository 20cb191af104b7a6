//! The kernel structures and calls that weir needs, without policy.
//!
//! Each item is a thin, safe wrapper of one kernel interface. Crate `weir` decides what to do with the results.

pub mod address;
pub mod bpf;
pub mod cgroup;
pub mod clock;
pub mod clsact;
pub mod cpu;
pub mod cut_off;
pub mod error;
pub mod ethtool;
pub mod filter;
pub mod fork;
pub mod inherited;
pub mod kernel;
pub mod landlock;
pub mod link;
pub mod lock;
pub mod names;
pub mod netdev;
mod netlink;
pub mod netns;
#[cfg(feature = "lab")]
pub mod nfqueue;
pub mod packet;
pub mod pair;
pub mod privilege;
pub mod process;
pub mod route;
pub mod signals;
pub mod sockets;
#[cfg(feature = "lab")]
pub mod tap;
pub mod testrun;
pub mod thread;
pub mod uring;
pub mod user;
pub mod veth;
pub mod xsk;

pub use error::CallError;
