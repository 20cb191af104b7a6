//! Test traffic: frames that carry a [`Signature`], by which a receiver can tell which ones arrived, and when they were
//! sent.
//!
//! - `signature`: the bytes of the signature.

#![forbid(unsafe_code)]

mod signature;

pub use self::signature::{Found, SIGNATURE_LENGTH, Signature};
