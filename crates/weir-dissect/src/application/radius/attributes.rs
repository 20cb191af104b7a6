//! Attributes of RADIUS (RFC 2865, RFC 2866, RFC 2868, RFC 2869, RFC 3162), with `-v`.

use std::net::Ipv6Addr;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::names;
use crate::base::text::put;

/// How a value is printed.
#[derive(Clone, Copy)]
enum Form {
    /// Not at all.
    Silent,
    Text,
    /// Text after an optional tag, which groups the attributes of a tunnel.
    TaggedText,
    Number,
    Words(&'static [&'static str]),
    /// A number or word after a tag.
    Tagged(&'static [&'static str]),
    Ip4,
    Ip6,
    Prefix6,
    Duration,
    /// The number or name of a VLAN, and whether its frames have a tag (RFC 4675).
    Vlan,
    VlanName,
    /// A tag, a salt and what was encrypted with it.
    Secret,
    Vendor,
    Message,
    ArapPassword,
    ArapFeatures,
    ArapResponse,
    Cause,
    MobileFeatures,
    HomePrefix,
    Operator,
    Location,
    LocationData,
    LocationRules,
}

use Form::{
    ArapFeatures, ArapPassword, ArapResponse, Cause, Duration, HomePrefix, Ip4, Ip6, Location, LocationData,
    LocationRules, Message, MobileFeatures, Number, Operator, Prefix6, Secret, Silent, Tagged, TaggedText,
    Text, Vendor, Vlan, VlanName, Words,
};

/// Lowest attribute number that has no name.
const NAMED: usize = 130;

#[rustfmt::skip]
const ATTRIBUTES: [(&str, Form); NAMED] = [
    ("Unknown", Silent), ("User-Name", Text), ("User-Password", Silent), ("CHAP-Password", Silent), ("NAS-IP-Address", Ip4),
    ("NAS-Port", Number), ("Service-Type", Words(&SERVICES)), ("Framed-Protocol", Words(&PROTOCOLS)),
    ("Framed-IP-Address", Ip4), ("Framed-IP-Netmask", Ip4),
    ("Framed-Routing", Words(&["None", "Send", "Listen", "Send&Listen"])), ("Filter-Id", Text), ("Framed-MTU", Number),
    ("Framed-Compression", Words(&["None", "VJ TCP/IP", "IPX", "Stac-LZS"])), ("Login-IP-Host", Ip4),
    ("Login-Service", Words(&LOGINS)), ("Login-TCP-Port", Number), ("Unassigned", Silent), ("Reply-Message", Text),
    ("Callback-Number", Text), ("Callback-Id", Text), ("Unassigned", Silent), ("Framed-Route", Text),
    ("Framed-IPX-Network", Number), ("State", Text), ("Class", Text), ("Vendor-Specific", Vendor),
    ("Session-Timeout", Duration), ("Idle-Timeout", Duration),
    ("Termination-Action", Words(&["Default", "RADIUS-Request"])), ("Called-Station-Id", Text),
    ("Calling-Station-Id", Text), ("NAS-Identifier", Text), ("Proxy-State", Text), ("Login-LAT-Service", Text),
    ("Login-LAT-Node", Text), ("Login-LAT-Group", Text), ("Framed-AppleTalk-Link", Number),
    ("Framed-AppleTalk-Network", Number), ("Framed-AppleTalk-Zone", Text), ("Acct-Status-Type", Words(&STATUSES)),
    ("Acct-Delay-Time", Duration), ("Acct-Input-Octets", Number), ("Acct-Output-Octets", Number),
    ("Acct-Session-Id", Text), ("Acct-Authentic", Words(&["", "RADIUS", "Local", "Remote", "Diameter"])),
    ("Acct-Session-Time", Duration), ("Acct-Input-Packets", Number), ("Acct-Output-Packets", Number),
    ("Acct-Terminate-Cause", Words(&CAUSES)), ("Acct-Multi-Session-Id", Text), ("Acct-Link-Count", Number),
    ("Acct-Input-Gigawords", Number), ("Acct-Output-Gigawords", Number), ("Unassigned", Silent),
    ("Event-Timestamp", Silent), ("Egress-VLANID", Vlan), ("Ingress-Filters", Words(&["", "Enabled", "Disabled"])),
    ("Egress-VLAN-Name", VlanName), ("User-Priority-Table", Silent), ("CHAP-Challenge", Text),
    ("NAS-Port-Type", Words(&PORTS)), ("Port-Limit", Number), ("Login-LAT-Port", Text),
    ("Tunnel-Type", Tagged(&TUNNELS)), ("Tunnel-Medium-Type", Tagged(&MEDIA)), ("Tunnel-Client-Endpoint", TaggedText),
    ("Tunnel-Server-Endpoint", TaggedText), ("Acct-Tunnel-Connection", Text), ("Tunnel-Password", Secret),
    ("ARAP-Password", ArapPassword), ("ARAP-Features", ArapFeatures),
    ("ARAP-Zone-Access", Words(&["", "Only access to dfl zone", "Use zone filter inc.", "Not used", "Use zone filter exc."])),
    ("ARAP-Security", Text), ("ARAP-Security-Data", Text), ("Password-Retry", Number),
    ("Prompt", Words(&["No Echo", "Echo"])), ("Connect-Info", Text), ("Configuration-Token", Text),
    ("EAP-Message", Message), ("Message-Authenticator", Text), ("Tunnel-Private-Group-ID", TaggedText),
    ("Tunnel-Assignment-ID", TaggedText), ("Tunnel-Preference", Tagged(&[])), ("ARAP-Challenge-Response", ArapResponse),
    ("Acct-Interim-Interval", Duration), ("Acct-Tunnel-Packets-Lost", Number), ("NAS-Port-Id", Text),
    ("Framed-Pool", Text), ("CUI", Text), ("Tunnel-Client-Auth-ID", TaggedText), ("Tunnel-Server-Auth-ID", TaggedText),
    ("NAS-Filter-Rule", Text), ("Unassigned", Silent), ("Originating-Line-Info", Silent), ("NAS-IPv6-Address", Ip6),
    ("Framed-Interface-ID", Silent), ("Framed-IPv6-Prefix", Prefix6), ("Login-IPv6-Host", Ip6),
    ("Framed-IPv6-Route", Text), ("Framed-IPv6-Pool", Text),
    ("Error-Cause", Cause), ("EAP-Key-Name", Silent), ("Digest-Response", Text), ("Digest-Realm", Text),
    ("Digest-Nonce", Text), ("Digest-Response-Auth", Text), ("Digest-Nextnonce", Text), ("Digest-Method", Text),
    ("Digest-URI", Text), ("Digest-Qop", Text), ("Digest-Algorithm", Text), ("Digest-Entity-Body-Hash", Text),
    ("Digest-CNonce", Text), ("Digest-Nonce-Count", Text), ("Digest-Username", Text), ("Digest-Opaque", Text),
    ("Digest-Auth-Param", Text), ("Digest-AKA-Auts", Text), ("Digest-Domain", Text), ("Digest-Stale", Text),
    ("Digest-HA1", Text), ("SIP-AOR", Text), ("Delegated-IPv6-Prefix", Prefix6),
    ("MIP6-Feature-Vector", MobileFeatures), ("MIP6-Home-Link-Prefix", HomePrefix), ("Operator-Name", Operator),
    ("Location-Information", Location), ("Location-Data", LocationData), ("Basic-Location-Policy-Rules", LocationRules),
];
#[rustfmt::skip]
const SERVICES: [&str; 20] = [
    "", "Login", "Framed", "Callback Login", "Callback Framed", "Outbound", "Administrative", "NAS Prompt",
    "Authenticate Only", "Callback NAS Prompt", "Call Check", "Callback Administrative", "Voice", "Fax", "Modem Relay",
    "IAPP-Register", "IAPP-AP-Check", "Authorize Only", "Framed-Management", "Additional-Authorization",
];
#[rustfmt::skip]
const PROTOCOLS: [&str; 8] = [
    "", "PPP", "SLIP", "ARAP", "Gandalf proprietary", "Xylogics IPX/SLIP", "X.75 Synchronous", "GPRS PDP Context",
];
#[rustfmt::skip]
const LOGINS: [&str; 9] = [
    "Telnet", "Rlogin", "TCP Clear", "PortMaster(proprietary)", "LAT", "X.25-PAD", "X.25-T3POS", "Unassigned",
    "TCP Clear Quiet",
];
#[rustfmt::skip]
const STATUSES: [&str; 16] = [
    "", "Start", "Stop", "Interim-Update", "Unassigned", "Unassigned", "Unassigned", "Accounting-On", "Accounting-Off",
    "Tunnel-Start", "Tunnel-Stop", "Tunnel-Reject", "Tunnel-Link-Start", "Tunnel-Link-Stop", "Tunnel-Link-Reject",
    "Failed",
];
#[rustfmt::skip]
const CAUSES: [&str; 24] = [
    "", "User Request", "Lost Carrier", "Lost Service", "Idle Timeout", "Session Timeout", "Admin Reset",
    "Admin Reboot", "Port Error", "NAS Error", "NAS Request", "NAS Reboot", "Port Unneeded", "Port Preempted",
    "Port Suspended", "Service Unavailable", "Callback", "User Error", "Host Request", "Supplicant Restart",
    "Reauthentication Failure", "Port Reinitialized", "Port Administratively Disabled", "Lost Power",
];
#[rustfmt::skip]
const PORTS: [&str; 26] = [
    "Async", "Sync", "ISDN Sync", "ISDN Async V.120", "ISDN Async V.110", "Virtual", "PIAFS", "HDLC Clear Channel",
    "X.25", "X.75", "G.3 Fax", "SDSL", "ADSL-CAP", "ADSL-DMT", "ISDN-DSL", "Ethernet", "xDSL", "Cable",
    "Wireless - Other", "Wireless - IEEE 802.11", "Token-Ring", "FDDI", "Wireless - CDMA200", "Wireless - UMTS",
    "Wireless - 1X-EV", "IAPP",
];
#[rustfmt::skip]
const TUNNELS: [&str; 14] = [
    "", "PPTP", "L2F", "L2TP", "ATMP", "VTP", "AH", "IP-IP", "MIN-IP-IP", "ESP", "GRE", "DVS", "IP-in-IP Tunneling",
    "VLAN",
];
#[rustfmt::skip]
const MEDIA: [&str; 16] = [
    "", "IPv4", "IPv6", "NSAP", "HDLC", "BBN 1822", "802", "E.163", "E.164", "F.69", "X.121", "IPX", "Appletalk",
    "Decnet IV", "Banyan Vines", "E.164 with NSAP subaddress",
];

impl Printer<'_> {
    pub(crate) fn radius_attributes(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 {
            let (kind, len) = (rest.u8(0)?, usize::from(rest.u8(1)?));
            let (name, form) = ATTRIBUTES.get(usize::from(kind)).unwrap_or(&("Unknown", Silent));
            put!(self, "\n\t  {name} Attribute ({kind}), length: {len}");
            if len < 2 {
                self.text(" (bogus, must be >= 2)");
                return Ok(());
            }
            if len > rest.len {
                self.text(" (bogus, goes past end of packet)");
                return Ok(());
            }
            self.text(", Value: ");
            if len > 2 {
                rest.get(2, len - 2)?;
                self.radius_value(*form, rest.from(2).first(len - 2))?;
            }
            if self.options.verbose > 1 {
                self.rows("\n\t    ", rest.get(2, len - 2)?);
            }
            rest = rest.from(len);
        }
        Ok(())
    }

    fn radius_value(&mut self, form: Form, value: Bytes<'_>) -> Result<(), Cut> {
        let len = match form {
            Number | Words(_) | Tagged(_) | Ip4 | Duration | Vlan => 4,
            Ip6 | ArapPassword => 16,
            ArapFeatures => 14,
            ArapResponse => value.len.max(8),
            MobileFeatures => 8,
            HomePrefix => 17,
            _ => value.len,
        };
        let least = match form {
            Operator => 2,
            Location => 21,
            LocationData => 3,
            LocationRules => 10,
            _ => 0,
        };
        if value.len < least {
            put!(self, "ERROR: length {} < {least}", value.len);
            return Ok(());
        }
        if value.len != len {
            put!(self, "ERROR: length {} != {len}", value.len);
            return Ok(());
        }
        match form {
            Silent => {}
            Text => self.radius_text(value.data),
            TaggedText => {
                let rest = self.radius_tag(value)?;
                self.radius_text(rest.data);
            }
            Number => put!(self, "{}", value.u32(0)?),
            Words(words) => self.radius_word(words, value.u32(0)?),
            Tagged(words) => {
                self.radius_tag(value)?;
                self.radius_word(words, value.u24(1)?);
            }
            Ip4 if value.u32(0)? == u32::MAX => self.text("User Selected"),
            Ip4 if value.u32(0)? == u32::MAX - 1 => self.text("NAS Select"),
            Ip4 => self.ip4_address(value.ip4(0)?),
            Ip6 => self.ip6_address(value.ip6(0)?),
            Prefix6 => self.radius_prefix(value)?,
            Duration => {
                let seconds = value.u32(0)?;
                let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
                match (hours, minutes) {
                    (0, 0) => put!(self, "{seconds:02} secs"),
                    (0, _) => put!(self, "{minutes:02}:{seconds:02} min"),
                    _ => put!(self, "{hours:02}:{minutes:02}:{seconds:02} hours"),
                }
            }
            Vlan | VlanName => {
                let tagged = value.u8(0)?;
                let word = match tagged {
                    0x31 => "Tagged",
                    0x32 => "Untagged",
                    _ => "Unknown tag",
                };
                put!(self, "{word} (0x{tagged:02x}) ");
                match form {
                    Vlan => put!(self, "{}", value.u24(1)?),
                    _ => self.radius_text(value.from(1).data),
                }
            }
            Secret if value.len < 3 => return Err(Cut),
            Secret => {
                match value.u8(0)? {
                    tag @ 1..0x20 => put!(self, "Tag[{tag}] "),
                    _ => self.text("Tag[Unused] "),
                }
                put!(self, "Salt {} ", value.u16(1)?);
                self.radius_text(value.from(3).data);
            }
            Vendor => self.radius_vendor(value)?,
            ArapPassword => self.radius_arap_password(value),
            ArapFeatures => self.radius_arap_features(value)?,
            ArapResponse => value.data.iter().take(8).for_each(|byte| put!(self, "{byte:02X}")),
            Cause => self.radius_cause(value)?,
            MobileFeatures => self.radius_mobile(value)?,
            HomePrefix => self.radius_home(value)?,
            Operator => self.radius_operator(value)?,
            Location => self.radius_location(value)?,
            LocationData => self.radius_location_data(value)?,
            LocationRules => self.radius_location_rules(value)?,
            Message => {
                let printed = self.eap(value.len, value);
                self.protocol = "radius";
                printed?;
            }
        }
        Ok(())
    }

    /// Prints text up to a zero, with a dot in place of each unprintable byte.
    fn radius_text(&mut self, text: &[u8]) {
        for &byte in text.iter().take_while(|&&byte| byte != 0) {
            self.line.push(if matches!(byte, b' '..=b'~') { byte } else { b'.' });
        }
    }

    /// Prints the tag in the first byte; returns what follows it.
    fn radius_tag<'b>(&mut self, value: Bytes<'b>) -> Result<Bytes<'b>, Cut> {
        match value.u8(0)? {
            0 => self.text("Tag[Unused] "),
            tag @ 1..0x20 => put!(self, "Tag[{tag}] "),
            _ => return Ok(value),
        }
        Ok(value.from(1))
    }

    fn radius_word(&mut self, words: &[&str], number: u32) {
        match usize::try_from(number).ok().and_then(|at| words.get(at)) {
            _ if words.is_empty() => put!(self, "{number}"),
            None | Some(&"") => put!(self, "#{number}"),
            Some(word) => self.text(word),
        }
    }

    fn radius_prefix(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        if !(2..=18).contains(&value.len) {
            put!(self, "ERROR: length {} not in range (2..18)", value.len);
            return Ok(());
        }
        let len = value.u8(1)?;
        let given = value.from(2).data;
        let mut prefix = [0; 16];
        prefix[..given.len()].copy_from_slice(given);
        self.ip6_address(Ipv6Addr::from(prefix));
        put!(self, "/{len}");
        if usize::from(len) > given.len() * 8 {
            self.text(" (inconsistent prefix length)");
        }
        Ok(())
    }

    fn radius_vendor(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        if value.len < 4 {
            return Err(Cut);
        }
        let vendor = value.u32(0)?;
        let name = names::enterprise(vendor).unwrap_or("Unknown");
        put!(self, "Vendor: {name} ({vendor})");
        let mut rest = value.from(4);
        while rest.len >= 2 {
            let (kind, len) = (rest.u8(0)?, usize::from(rest.u8(1)?));
            put!(self, "\n\t    Vendor Attribute: {kind}");
            if len < 2 {
                put!(self, ", Length: {len} (bogus, must be >= 2)");
                return Ok(());
            }
            if len > rest.len {
                put!(self, ", Length: {len} (bogus, goes past end of vendor-specific attribute)");
                return Ok(());
            }
            let len = len - 2;
            put!(self, ", Length: {len}");
            self.text(", Value: ");
            for &byte in rest.get(2, len)? {
                self.line.push(if matches!(byte, b' '..=b'~') { byte } else { b'.' });
            }
            rest = rest.from(2 + len);
        }
        Ok(())
    }
}
