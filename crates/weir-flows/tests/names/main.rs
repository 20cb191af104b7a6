//! What the first packets of a flow say.
#![forbid(unsafe_code)]

mod made;
mod tcp;
