//! Packets in packets.

mod geneve;
mod gre;
mod l2tp;
mod mpls;
mod nsh;
mod pppoe;
mod pptp;
mod vxlan;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};

impl Printer<'_> {
    /// Prints the payload of an EtherType; returns whether it is known.
    fn inner(&mut self, ethertype: u16, bytes: Bytes<'_>) -> Result<bool, Cut> {
        let mut known = false;
        self.nested(|printer| {
            known = printer.carried(ethertype, bytes)?;
            Ok(())
        })?;
        Ok(known || self.depth == crate::DEEPEST)
    }
}
