//! Keys and logins.

mod eapol;
pub(crate) mod ike;
mod ike2;
mod isakmp;
mod kerberos;
mod macsec;
