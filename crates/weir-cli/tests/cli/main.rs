//! The real binary, run as users run it.
#![forbid(unsafe_code)]

mod arguments;
mod capture;
mod check;
mod confine;
mod container;
#[path = "../contract/mod.rs"]
mod contract;
#[path = "../contract/tests.rs"]
mod contract_tests;
mod control;
mod count;
mod demo;
mod devices;
mod doctor;
mod exact_rules;
mod files;
mod filter;
mod flow_files;
mod flows;
mod follow;
mod forward;
mod generate;
mod guard;
mod guard_ctl;
mod guard_exit;
mod harness;
mod hostile;
mod kafka_spool;
mod kernel_flows;
mod libpcap;
mod losses;
mod many;
mod metrics;
mod names;
mod namespaces;
mod order;
mod printing;
mod queues;
mod replay;
mod rules_capture;
mod sample;
mod sets;
mod shells;
#[path = "../read/signed.rs"]
mod signed;
mod soak;
mod stat;
mod stat_beside;
mod stat_several;
mod terminal;
mod who;
