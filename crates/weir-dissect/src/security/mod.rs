//! Keys and logins.

mod eapol;
pub(crate) mod ike;
mod ike2;
mod ipsec;
mod isakmp;
mod kerberos;
mod macsec;
