//! What is exported, as others read it.
#![forbid(unsafe_code)]

mod decode;
mod made;
mod nfacctd;
mod pcap;
mod structure;
mod tshark;
