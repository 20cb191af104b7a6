//! sFlow version 5 (sflow.org/sflow_version_5.txt).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const IP4: u32 = 1;
/// Bits of a format; the others are the number of an enterprise.
const FORMAT: u32 = 0xfff;
/// Lengths of the headers of a sample and of a record.
const HEADER: usize = 8;

const DIRECTIONS: [&str; 5] = ["unknown", "full-duplex", "half-duplex", "in", "out"];

/// Lines of a record: text, and the offset and length of the number after it.
type Lines = &'static [&'static [(&'static str, usize, usize)]];

const ETHERNET: Lines = &[
    &[
        ("align errors ", 0, 4),
        (", fcs errors ", 4, 4),
        (", single collision ", 8, 4),
        (", multiple collision ", 12, 4),
        (", test error ", 16, 4),
    ],
    &[
        ("deferred ", 20, 4),
        (", late collision ", 24, 4),
        (", excessive collision ", 28, 4),
        (", mac trans error ", 32, 4),
    ],
    &[
        ("carrier error ", 36, 4),
        (", frames too long ", 40, 4),
        (", mac receive errors ", 44, 4),
        (", symbol errors ", 48, 4),
    ],
];
const BASE_VG: Lines = &[
    &[("in high prio frames ", 0, 4), (", in high prio octets ", 4, 8)],
    &[("in norm prio frames ", 12, 4), (", in norm prio octets ", 16, 8)],
    &[
        ("in ipm errors ", 24, 4),
        (", oversized ", 28, 4),
        (", in data errors ", 32, 4),
        (", null addressed frames ", 36, 4),
    ],
    &[("out high prio frames ", 40, 4), (", out high prio octets ", 44, 8), (", trans into frames ", 52, 4)],
    &[
        ("in hc high prio octets ", 56, 8),
        (", in hc norm prio octets ", 64, 8),
        (", out hc high prio octets ", 72, 8),
    ],
];
const VLAN: Lines = &[&[
    ("vlan_id ", 0, 4),
    (", octets ", 4, 8),
    (", unicast_pkt ", 12, 4),
    (", multicast_pkt ", 16, 4),
    (", broadcast_pkt ", 20, 4),
    (", discards ", 24, 4),
]];
const PROCESSOR: Lines = &[&[
    ("5sec ", 0, 4),
    (", 1min ", 4, 4),
    (", 5min ", 8, 4),
    (", total_mem ", 12, 8),
    // The free memory; tcpdump's word.
    (", total_mem ", 20, 8),
]];
/// What follows the status in a record of an interface.
const INTERFACE: Lines = &[
    &[
        ("In octets ", 24, 8),
        (", unicast pkts ", 32, 4),
        (", multicast pkts ", 36, 4),
        (", broadcast pkts ", 40, 4),
        (", discards ", 44, 4),
    ],
    &[("In errors ", 48, 4), (", unknown protos ", 52, 4)],
    &[
        ("Out octets ", 56, 8),
        (", unicast pkts ", 64, 4),
        (", multicast pkts ", 68, 4),
        (", broadcast pkts ", 72, 4),
        (", discards ", 76, 4),
    ],
    &[("Out errors ", 80, 4), (", promisc mode ", 84, 4)],
];
const SWITCH: Lines =
    &[&[("src vlan ", 0, 4), (", src pri ", 4, 4), (", dst vlan ", 8, 4), (", dst pri ", 12, 4)]];
const FRAME: Lines = &[&[("frame len ", 0, 4), (", type ", 20, 4)]];

/// Name, least length and lines of a record of counters.
fn counter(format: u32) -> Option<(&'static str, usize, Lines)> {
    Some(match format {
        1 => ("Generic counter", 88, INTERFACE),
        2 => ("Ethernet counter", 52, ETHERNET),
        3 => ("Token ring counter", 0, &[]),
        4 => ("100 BaseVG counter", 80, BASE_VG),
        5 => ("Vlan counter", 28, VLAN),
        1001 => ("Processor counter", 28, PROCESSOR),
        _ => return None,
    })
}

/// Name, least length and lines of a record of a flow.
fn flow(format: u32) -> Option<(&'static str, usize, Lines)> {
    Some(match format {
        1 => ("Raw packet", 16, &[]),
        2 => ("Ethernet frame", 24, FRAME),
        3 => ("IPv4 Data", 0, &[]),
        4 => ("IPv6 Data", 0, &[]),
        1001 => ("Extended Switch data", 16, SWITCH),
        1002 => ("Extended Router data", 0, &[]),
        1003 => ("Extended Gateway data", 0, &[]),
        1004 => ("Extended User data", 0, &[]),
        1005 => ("Extended URL data", 0, &[]),
        1006 => ("Extended MPLS data", 0, &[]),
        1007 => ("Extended NAT data", 0, &[]),
        1008 => ("Extended MPLS tunnel", 0, &[]),
        1009 => ("Extended MPLS VC", 0, &[]),
        1010 => ("Extended MPLS FEC", 0, &[]),
        1011 => ("Extended MPLS LVP FEC", 0, &[]),
        1012 => ("Extended VLAN Tunnel", 0, &[]),
        _ => return None,
    })
}

impl Printer<'_> {
    pub(crate) fn sflow(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "sflow";
        self.facts.protocol = Some("sflow");
        let version = bytes.u32(0)?;
        if version != 5 {
            put!(self, "sFlow version {version} packet not supported");
            return Ok(());
        }
        let (family, len) = if bytes.u32(4)? == IP4 { ("IPv4", 4) } else { ("IPv6", 16) };
        let rest = bytes.from(8 + len);
        rest.get(0, 16)?;
        put!(self, "sFlowv5, {family} agent ");
        match len {
            4 => self.ip4_address(bytes.ip4(8)?),
            _ => self.ip6_address(bytes.ip6(8)?),
        }
        put!(self, ", agent-id {}", rest.u32(0)?);
        let samples = rest.u32(12)?;
        if self.options.verbose > 0 {
            put!(self, ", seqnum {}, uptime {}, samples {samples}", rest.u32(4)?, rest.u32(8)?);
        }
        put!(self, ", length {}", bytes.len);
        if self.options.verbose > 0 {
            return self.sflow_samples(samples, rest.from(16));
        }
        Ok(())
    }

    fn sflow_samples(&mut self, samples: u32, mut rest: Bytes<'_>) -> Result<(), Cut> {
        for _ in 0..samples {
            if rest.len == 0 {
                break;
            }
            let (format, len) = (rest.u32(0)? & FORMAT, rest.u32(4)? as usize);
            let name = match format {
                1 => "flow sample",
                2 => "counter sample",
                3 => "expanded flow sample",
                4 => "expanded counter sample",
                _ => "Unknown",
            };
            put!(self, "\n\t{name} ({format}), length {len},");
            let content = rest.from(HEADER);
            if format == 0 || len == 0 {
                break;
            }
            // Unlike tcpdump, no sample reads past its length: reading would take time with the square of the packet.
            let sample = content.first(len);
            let valid = match format {
                _ if len > content.len => false,
                _ if !sample.whole() => return Err(Cut),
                1 => self.sflow_flow(sample, false)?,
                2 => self.sflow_counters(sample, false)?,
                3 => self.sflow_flow(sample, true)?,
                4 => self.sflow_counters(sample, true)?,
                _ => {
                    if self.options.verbose < 2 {
                        self.rows("\n\t    ", sample.data);
                    }
                    true
                }
            };
            if !valid {
                return self.invalid(content);
            }
            rest = content.from(len);
        }
        Ok(())
    }

    /// Prints the number of a sample and its source, which takes eight bytes if it is `expanded` and else four; returns
    /// what follows, unless it is shorter than `least`.
    fn sflow_source<'a>(
        &mut self,
        bytes: Bytes<'a>,
        expanded: bool,
        least: usize,
    ) -> Result<Option<Bytes<'a>>, Cut> {
        let len = if expanded { 12 } else { 8 };
        if bytes.len < len + least {
            return Ok(None);
        }
        let source = bytes.u32(4)?;
        let (kind, index) =
            if expanded { (source, bytes.u32(8)?) } else { (source >> 24, source & 0xff_ffff) };
        put!(self, " seqnum {}, type {kind}, idx {index}", bytes.u32(0)?);
        Ok(Some(bytes.from(len)))
    }

    /// Prints the sample of a flow; returns whether it is valid.
    fn sflow_flow(&mut self, bytes: Bytes<'_>, expanded: bool) -> Result<bool, Cut> {
        let len = if expanded { 32 } else { 24 };
        let Some(rest) = self.sflow_source(bytes, expanded, len)? else { return Ok(false) };
        put!(self, ", rate {}, pool {}, drops {},", rest.u32(0)?, rest.u32(4)?, rest.u32(8)?);
        if !expanded {
            put!(self, " input {} output {}", rest.u32(12)?, rest.u32(16)?);
        }
        let records = rest.u32(len - 4)?;
        put!(self, " records {records}");
        self.sflow_records(records, rest.from(len), true)
    }

    /// Prints a sample of counters; returns whether it is valid.
    fn sflow_counters(&mut self, bytes: Bytes<'_>, expanded: bool) -> Result<bool, Cut> {
        let Some(rest) = self.sflow_source(bytes, expanded, 4)? else { return Ok(false) };
        let records = rest.u32(0)?;
        put!(self, ", records {records}");
        self.sflow_records(records, rest.from(4), false)
    }

    fn sflow_records(&mut self, records: u32, mut rest: Bytes<'_>, flows: bool) -> Result<bool, Cut> {
        for _ in 0..records {
            if rest.len < HEADER {
                return Ok(false);
            }
            let (number, len) = (rest.u32(0)?, rest.u32(4)? as usize);
            // As in tcpdump, which takes fewer bits in counters.
            let enterprise = number >> if flows { 12 } else { 20 };
            let format = number & FORMAT;
            let known = match enterprise {
                0 if flows => flow(format),
                0 => counter(format),
                _ => None,
            };
            let (name, least, lines) = known.unwrap_or(("Unknown", 0, &[]));
            let comma = if flows { "" } else { "," };
            put!(self, "\n\t    enterprise {enterprise}{comma} {name} ({format}) length {len}");
            rest = rest.from(HEADER);
            if len > rest.len || len < least {
                return Ok(false);
            }
            let record = rest.first(len);
            match (flows, enterprise, format) {
                (true, 0, 1) => self.sflow_packet(record)?,
                (false, 0, 1) => self.sflow_interface(record)?,
                (_, 0, _) if known.is_none() && self.options.verbose < 2 => {
                    self.rows("\n\t\t", record.data);
                }
                _ => {}
            }
            for line in lines {
                self.text("\n\t      ");
                for (text, at, len) in *line {
                    self.text(text);
                    let high = if *len == 8 { record.u32(*at)? } else { 0 };
                    self.number(u64::from(high) << 32 | u64::from(record.u32(at + len - 4)?));
                }
            }
            rest = rest.from(len);
        }
        Ok(true)
    }

    fn sflow_packet(&mut self, record: Bytes<'_>) -> Result<(), Cut> {
        let protocol = record.u32(0)?;
        let name = match protocol {
            1 => "Ethernet",
            11 => "IPv4",
            12 => "IPv6",
            _ => "Unknown",
        };
        put!(self, "\n\t      protocol {name} ({protocol}), length {}", record.u32(4)?);
        put!(self, ", stripped bytes {}, header_size {}", record.u32(8)?, record.u32(12)?);
        Ok(())
    }

    fn sflow_interface(&mut self, record: Bytes<'_>) -> Result<(), Cut> {
        let speed = u64::from(record.u32(8)?) << 32 | u64::from(record.u32(12)?);
        let (direction, status) = (record.u32(16)?, record.u32(20)?);
        put!(self, "\n\t      ifindex {}, iftype {}", record.u32(0)?, record.u32(4)?);
        let name = DIRECTIONS.get(direction as usize).unwrap_or(&"Unknown");
        put!(self, ", ifspeed {speed}, ifdirection {direction} ({name})");
        let state = |bit: u32| if status & bit != 0 { "up" } else { "down" };
        put!(self, "\n\t      ifstatus {status}, adminstatus: {}, operstatus: {}", state(1), state(2));
        Ok(())
    }
}
