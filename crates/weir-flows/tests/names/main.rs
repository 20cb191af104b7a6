//! What the first packets of a flow say.
#![forbid(unsafe_code)]

mod ja4;
mod made;
mod quic;
mod tcp;
