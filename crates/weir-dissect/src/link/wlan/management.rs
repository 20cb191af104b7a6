//! Management frames of IEEE 802.11.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut, until_zero};
use crate::base::text::put;
use crate::link::wlan::codes::{REASONS, STATUS};
use crate::link::wlan::{Control, PROTECTED};

const INFRASTRUCTURE: u16 = 1;
const PRIVACY: u16 = 0x10;

const SHARED_KEY: u16 = 1;
const ALGORITHMS: [&str; 3] = ["Open System", "Shared Key", "EAP"];

/// What can be in a frame more than once; the first one counts.
#[derive(Default)]
struct Elements<'a> {
    network: Option<&'a [u8]>,
    rates: Option<&'a [u8]>,
    channel: Option<u8>,
}

impl<'a> Elements<'a> {
    /// Reads elements until the end, or until one is wrong or cut off.
    fn read(&mut self, mut bytes: Bytes<'a>) -> Result<(), Cut> {
        while bytes.len > 0 {
            let (kind, len) = (bytes.u8(0)?, usize::from(bytes.u8(1)?));
            let value = bytes.get(2, len)?;
            let longest = match kind {
                0 => 32,
                1 => 16,
                5 => 254,
                16 => 253,
                _ => 255,
            };
            if len > longest {
                return Err(Cut);
            }
            match (kind, value) {
                (0, _) => drop(self.network.get_or_insert(value)),
                (1, [_, ..]) => drop(self.rates.get_or_insert(value)),
                (3, [channel]) => drop(self.channel.get_or_insert(*channel)),
                _ => {}
            }
            bytes = bytes.from(2 + len);
        }
        Ok(())
    }
}

fn status(code: u16) -> &'static str {
    STATUS.get(usize::from(code)).unwrap_or(&"n/a")
}

fn reason(code: u16) -> &'static str {
    REASONS.get(usize::from(code)).unwrap_or(&"Reserved")
}

impl Printer<'_> {
    pub(crate) fn wlan_management(
        &mut self,
        control: Control,
        source: [u8; 6],
        body: Bytes<'_>,
    ) -> Result<(), Cut> {
        let name = match control.subtype {
            0 => "Assoc Request",
            1 => "Assoc Response",
            2 => "ReAssoc Request",
            3 => "ReAssoc Response",
            4 => "Probe Request",
            5 => "Probe Response",
            8 => "Beacon",
            9 => "ATIM",
            10 => "Disassociation",
            11 => "Authentication",
            12 => "DeAuthentication",
            13 => "Action",
            subtype => {
                put!(self, "Unhandled Management subtype({subtype:x})");
                ""
            }
        };
        self.text(name);
        if control.flags & PROTECTED != 0 {
            return self.wlan_encrypted(body);
        }
        match control.subtype {
            0 => self.association_request(body),
            1 | 3 => self.association_response(body),
            2 => self.reassociation_request(body),
            4 => self.network_and_rates(body),
            5 => self.beacon(body, false),
            8 => self.beacon(body, true),
            10 => {
                put!(self, ": {}", reason(body.le16(0)?));
                Ok(())
            }
            11 => self.wlan_authentication(body),
            12 => {
                let reason = reason(body.le16(0)?);
                self.source_unless_header(source);
                put!(self, ": {reason}");
                Ok(())
            }
            13 => self.wlan_action(source, body),
            _ => Ok(()),
        }
    }

    fn source_unless_header(&mut self, source: [u8; 6]) {
        if !self.options.link {
            self.text(" (");
            self.mac(source);
            self.text(")");
        }
    }

    fn beacon(&mut self, body: Bytes<'_>, beacon: bool) -> Result<(), Cut> {
        let capabilities = body.le16(10)?;
        let mut elements = Elements::default();
        let read = elements.read(body.from(12));
        self.network(&elements);
        self.rates(&elements);
        if beacon {
            self.text(if capabilities & INFRASTRUCTURE != 0 { " ESS" } else { " IBSS" });
        }
        if let Some(channel) = elements.channel {
            put!(self, " CH: {channel}");
        }
        if capabilities & PRIVACY != 0 {
            self.text(", PRIVACY");
        }
        read
    }

    fn network(&mut self, elements: &Elements<'_>) {
        if let Some(name) = elements.network {
            self.text(" (");
            self.harmless(until_zero(name));
            self.text(")");
        }
    }

    fn rates(&mut self, elements: &Elements<'_>) {
        let Some(rates) = elements.rates else { return };
        let mut before = " [";
        for rate in rates {
            // In units of 500 kbit/s; the highest bit marks those that every station has.
            let (half, basic) = (rate & 0x7f, if rate & 0x80 != 0 { "*" } else { "" });
            put!(self, "{before}{}.{}{basic}", half / 2, half % 2 * 5);
            before = " ";
        }
        self.text(" Mbit]");
    }

    fn network_and_rates(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let mut elements = Elements::default();
        let read = elements.read(bytes);
        self.network(&elements);
        self.rates(&elements);
        read
    }

    fn association_request(&mut self, body: Bytes<'_>) -> Result<(), Cut> {
        body.get(0, 4)?;
        self.network_and_rates(body.from(4))
    }

    fn reassociation_request(&mut self, body: Bytes<'_>) -> Result<(), Cut> {
        let access_point = body.mac(4)?;
        let mut elements = Elements::default();
        let read = elements.read(body.from(10));
        self.network(&elements);
        self.text(" AP : ");
        self.mac(access_point);
        read
    }

    fn association_response(&mut self, body: Bytes<'_>) -> Result<(), Cut> {
        let (capabilities, code, id) = (body.le16(0)?, body.le16(2)?, body.le16(4)?);
        let read = Elements::default().read(body.from(6));
        let privacy = if capabilities & PRIVACY != 0 { " PRIVACY " } else { "" };
        put!(self, " AID({:x}) :{privacy}: {}", id & 0x3fff, status(code));
        read
    }

    fn wlan_authentication(&mut self, body: Bytes<'_>) -> Result<(), Cut> {
        let (algorithm, step, code) = (body.le16(0)?, body.le16(2)?, body.le16(4)?);
        let read = Elements::default().read(body.from(6));
        let name = ALGORITHMS.get(usize::from(algorithm)).unwrap_or(&"Reserved");
        let challenge = algorithm == SHARED_KEY && matches!(step, 2 | 3);
        let after = if challenge { " [Challenge Text]" } else { ":" };
        let result = if step % 2 == 1 { status(code) } else { "" };
        put!(self, " ({name})-{step:x}{after} {result}");
        read
    }

    fn wlan_action(&mut self, source: [u8; 6], body: Bytes<'_>) -> Result<(), Cut> {
        let (category, action) = (body.u8(0)?, body.u8(1)?);
        self.source_unless_header(source);
        self.text(": ");
        let (name, actions): (_, &[&str]) = match category {
            0 => ("Spectrum Management", &[]),
            1 => ("QoS", &[]),
            2 => ("DLS", &[]),
            3 => ("BA", &["ADDBA Request", "ADDBA Response", "DELBA"]),
            7 => ("HT", &["TxChWidth", "MIMOPwrSave"]),
            13 => (
                "MeshAction",
                &[
                    "MeshLink",
                    "HWMP",
                    "Gate Announcement",
                    "Congestion Control",
                    "MCCA Setup Request",
                    "MCCA Setup Reply",
                    "MCCA Advertisement Request",
                    "MCCA Advertisement",
                    "MCCA Teardown",
                    "TBTT Adjustment Request",
                    "TBTT Adjustment Response",
                ],
            ),
            // As tcpdump 4.99 spells it.
            14 => ("MultiohopAction", &["Proxy Update", "Proxy Update Confirmation"]),
            15 => (
                "SelfprotectAction",
                &[
                    "",
                    "Peering Open",
                    "Peering Confirm",
                    "Peering Close",
                    "Group Key Inform",
                    "Group Key Acknowledge",
                ],
            ),
            127 => ("Vendor", &[]),
            _ => ("", &[]),
        };
        match name {
            "" => put!(self, "Reserved({category}) "),
            name => put!(self, "{name} "),
        }
        match actions.get(usize::from(action)) {
            Some(name) if !name.is_empty() => self.text(name),
            _ => put!(self, "Act#{action}"),
        }
        Ok(())
    }
}
