//! `weir read`, judged by tcpdump, tshark, capinfos, editcap and mergecap.
#![forbid(unsafe_code)]

#[path = "read/support.rs"]
mod support;

#[path = "read/convert.rs"]
mod convert;
#[path = "read/damage.rs"]
mod damage;
#[path = "read/filter.rs"]
mod filter;
#[path = "read/info.rs"]
mod info;
#[path = "read/lines.rs"]
mod lines;
#[path = "read/split.rs"]
mod split;
