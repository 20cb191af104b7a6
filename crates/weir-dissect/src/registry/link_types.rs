//! Link types (<https://www.tcpdump.org/linktypes.html>).

use weir_packet::link_type;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

impl Printer<'_> {
    /// Prints a packet with link type `LINKTYPE_*`.
    pub(crate) fn link(&mut self, link_type: u16, bytes: Bytes<'_>) -> Result<(), Cut> {
        match link_type {
            link_type::NULL => self.loopback(bytes, false),
            link_type::ETHERNET => self.ethernet(bytes),
            9 => self.ppp_frame(bytes),
            50 => self.ppp_serial(bytes),
            link_type::RAW_12 | link_type::RAW_14 | link_type::RAW => self.raw_ip(bytes),
            104 => self.cisco_hdlc(bytes),
            105 => self.wlan(bytes, Default::default()),
            107 => self.frame_relay(bytes),
            link_type::LOOP => self.loopback(bytes, true),
            link_type::COOKED => self.cooked(bytes),
            127 => self.radiotap(bytes),
            192 => self.ppi(bytes),
            link_type::IPV4 | link_type::IPV6 => self.raw_ip(bytes),
            239 => self.nflog(bytes),
            link_type::COOKED_2 => self.cooked2(bytes),
            _ => {
                put!(self, "link-type {link_type}, length {}", bytes.len);
                self.unknown(bytes.data);
                Ok(())
            }
        }
    }
}
