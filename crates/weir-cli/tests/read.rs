//! `weir read`, judged by tcpdump, tshark, capinfos, editcap and mergecap.
#![forbid(unsafe_code)]

#[path = "contract/mod.rs"]
mod contract;
#[path = "../../weir/tests/reader/files.rs"]
#[allow(dead_code, reason = "tests of the library take the rest of this file")]
mod files;
#[path = "read/signed.rs"]
mod signed;
#[path = "read/support.rs"]
mod support;

#[path = "read/anonymised.rs"]
mod anonymised;
#[path = "read/changed.rs"]
mod changed;
#[path = "read/check.rs"]
mod check;
#[path = "read/convert.rs"]
mod convert;
#[path = "read/damage.rs"]
mod damage;
#[path = "read/filter.rs"]
mod filter;
#[path = "read/hope.rs"]
mod hope;
#[path = "read/info.rs"]
mod info;
#[path = "read/lines.rs"]
mod lines;
#[path = "read/notes.rs"]
mod notes;
#[path = "read/output.rs"]
mod output;
#[path = "read/payloads.rs"]
mod payloads;
#[path = "read/split.rs"]
mod split;
#[path = "read/stream.rs"]
mod stream;
