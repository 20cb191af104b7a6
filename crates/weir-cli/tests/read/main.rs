//! `weir read`, judged by tcpdump, tshark, capinfos, editcap and mergecap.
#![forbid(unsafe_code)]

#[path = "../contract/mod.rs"]
mod contract;
#[path = "../../../weir/tests/reader/files.rs"]
#[allow(dead_code, reason = "tests of the library take the rest of this file")]
mod files;
#[path = "../../../weir-export/tests/gateway/mod.rs"]
mod gateway;
mod signed;
mod support;

mod anonymised;
mod changed;
mod check;
mod convert;
mod damage;
mod filter;
mod flow_judges;
mod flows;
mod hope;
mod info;
mod lines;
mod notes;
mod output;
mod payloads;
mod rules;
mod split;
mod sql;
mod stream;
mod who;
