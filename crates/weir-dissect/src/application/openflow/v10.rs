//! OpenFlow 1.0. Messages of vendors are only named.

use crate::Printer;
use crate::application::openflow::codes::{
    Body, CONFIGURATION_FLAGS, Invalid, PORT_CHANGES, RESERVED, RIGHT, WRONG,
};
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Lengths of parts of messages.
const PORT: usize = 48;
const MATCH: usize = 40;
const ACTION: usize = 8;
const FLOW: usize = 88;
const TABLE: usize = 64;
const PORT_COUNTERS: usize = 104;
const QUEUE_COUNTERS: usize = 32;

const NO_BUFFER: u32 = 0xffff_ffff;
const CONTROLLER: u16 = 0xfffd;

const DESCRIPTION: u16 = 0;
const FLOWS: u16 = 1;
const AGGREGATE: u16 = 2;
const TABLES: u16 = 3;
const PORTS: u16 = 4;
const QUEUES: u16 = 5;
const VENDOR: u16 = 0xffff;
const STATISTICS: [&str; 6] = ["DESC", "FLOW", "AGGREGATE", "TABLE", "PORT", "QUEUE"];

const CAPABILITIES: [(u32, &str); 8] = [
    (1, "FLOW_STATS"),
    (2, "TABLE_STATS"),
    (4, "PORT_STATS"),
    (8, "STP"),
    (0x10, RESERVED),
    (0x20, "IP_REASM"),
    (0x40, "QUEUE_STATS"),
    (0x80, "ARP_MATCH_IP"),
];
const ACTIONS: [&str; 12] = [
    "OUTPUT",
    "SET_VLAN_VID",
    "SET_VLAN_PCP",
    "STRIP_VLAN",
    "SET_DL_SRC",
    "SET_DL_DST",
    "SET_NW_SRC",
    "SET_NW_DST",
    "SET_NW_TOS",
    "SET_TP_SRC",
    "SET_TP_DST",
    "ENQUEUE",
];
const PORT_CONFIGURATION: [(u32, &str); 7] = [
    (1, "PORT_DOWN"),
    (2, "NO_STP"),
    (4, "NO_RECV"),
    (8, "NO_RECV_STP"),
    (0x10, "NO_FLOOD"),
    (0x20, "NO_FWD"),
    (0x40, "NO_PACKET_IN"),
];
const PORT_FEATURES: [(u32, &str); 12] = [
    (1, "10MB_HD"),
    (2, "10MB_FD"),
    (4, "100MB_HD"),
    (8, "100MB_FD"),
    (0x10, "1GB_HD"),
    (0x20, "1GB_FD"),
    (0x40, "10GB_FD"),
    (0x80, "COPPER"),
    (0x100, "FIBER"),
    (0x200, "AUTONEG"),
    (0x400, "PAUSE"),
    (0x800, "PAUSE_ASYM"),
];
/// What a match does not look at.
const WILDCARDS: [(u32, &str); 10] = [
    (1, "IN_PORT"),
    (2, "DL_VLAN"),
    (4, "DL_SRC"),
    (8, "DL_DST"),
    (0x10, "DL_TYPE"),
    (0x20, "NW_PROTO"),
    (0x40, "TP_SRC"),
    (0x80, "TP_DST"),
    (0x10_0000, "DL_VLAN_PCP"),
    (0x20_0000, "NW_TOS"),
];
/// The bits of the lengths of prefixes, which have no name.
const PREFIXES: u32 = 0xf_ff00;
const FLOW_FLAGS: [(u32, &str); 3] = [(1, "SEND_FLOW_REM"), (2, "CHECK_OVERLAP"), (4, "EMERG")];
const COMMANDS: [&str; 5] = ["ADD", "MODIFY", "MODIFY_STRICT", "DELETE", "DELETE_STRICT"];
const REMOVALS: [&str; 3] = ["IDLE_TIMEOUT", "HARD_TIMEOUT", "DELETE"];
const ERRORS: [(&str, &[&str]); 6] = [
    ("HELLO_FAILED", &["INCOMPATIBLE", "EPERM"]),
    (
        "BAD_REQUEST",
        &[
            "BAD_VERSION",
            "BAD_TYPE",
            "BAD_STAT",
            "BAD_VENDOR",
            "BAD_SUBTYPE",
            "EPERM",
            "BAD_LEN",
            "BUFFER_EMPTY",
            "BUFFER_UNKNOWN",
        ],
    ),
    (
        "BAD_ACTION",
        &[
            "BAD_TYPE",
            "BAD_LEN",
            "BAD_VENDOR",
            "BAD_VENDOR_TYPE",
            "BAD_OUT_PORT",
            "BAD_ARGUMENT",
            "EPERM",
            "TOO_MANY",
            "BAD_QUEUE",
        ],
    ),
    (
        "FLOW_MOD_FAILED",
        &["ALL_TABLES_FULL", "OVERLAP", "EPERM", "BAD_EMERG_TIMEOUT", "BAD_COMMAND", "UNSUPPORTED"],
    ),
    ("PORT_MOD_FAILED", &["BAD_PORT", "BAD_HW_ADDR"]),
    ("QUEUE_OP_FAILED", &["BAD_PORT", "BAD_QUEUE", "EPERM"]),
];

impl Printer<'_> {
    pub(crate) fn openflow10(&mut self, kind: u8, body: Bytes<'_>) -> Body {
        match kind {
            0 | 2 | 3 => self.openflow_data(body)?,
            1 => self.openflow_error(body, &ERRORS)?,
            4 => {
                self.openflow_vendor(", vendor ", body.u32(0)?);
                self.openflow_data(body.from(4))?;
            }
            6 => return self.openflow10_features(body),
            8 | 9 => {
                let flags = body.u16(0)?;
                self.text("\n\t flags ");
                self.openflow_name(&CONFIGURATION_FLAGS, flags);
                put!(self, ", miss_send_len {}", body.u16(2)?);
            }
            10 => {
                self.openflow10_buffer("\n\t buffer_id ", body.u32(0)?);
                put!(self, ", total_len {}", body.u16(4)?);
                self.openflow10_port(", in_port ", body.u16(6)?);
                self.openflow10_reason(", reason ", &["NO_MATCH", "ACTION"], "invalid", body.u8(8)?);
                body.u8(9)?;
                self.openflow_frame(body.from(10))?;
            }
            11 => {
                self.openflow10_match("\n\t ", body)?;
                put!(self, "\n\t cookie 0x{:016x}", body.u64(40)?);
                self.openflow10_nonzero(", priority ", body.u16(48)?);
                self.openflow10_reason(", reason ", &REMOVALS, "unknown", body.u8(50)?);
                put!(self, ", duration_sec {}", body.u32(52)?);
                put!(self, ", duration_nsec {}", body.u32(56)?);
                self.openflow10_nonzero(", idle_timeout ", body.u16(60)?);
                put!(self, ", packet_count {}", body.u64(64)?);
                put!(self, ", byte_count {}", body.u64(72)?);
            }
            12 => {
                self.openflow10_reason("\n\t reason ", &PORT_CHANGES, "invalid", body.u8(0)?);
                self.openflow10_port_description(body.from(8))?;
            }
            13 => return self.openflow10_packet_out(body),
            14 => return self.openflow10_flow(body),
            15 => {
                self.openflow10_port("\n\t port_no ", body.u16(0)?);
                self.openflow_mac(", hw_addr ", body.mac(2)?);
                self.openflow_field("config", body.u32(8)?, &PORT_CONFIGURATION);
                self.openflow_field("mask", body.u32(12)?, &PORT_CONFIGURATION);
                self.openflow_field("advertise", body.u32(16)?, &PORT_FEATURES);
            }
            16 => return self.openflow10_question(body),
            17 => return self.openflow10_answer(body),
            20 => {
                self.openflow10_port("\n\t port ", body.u16(0)?);
            }
            21 => {
                self.openflow10_port("\n\t port ", body.u16(0)?);
                return self.openflow10_queues(body.from(8));
            }
            _ => {}
        }
        RIGHT
    }

    fn openflow10_features(&mut self, body: Bytes<'_>) -> Body {
        put!(self, "\n\t dpid 0x{:016x}", body.u64(0)?);
        put!(self, ", n_buffers {}", body.u32(8)?);
        put!(self, ", n_tables {}", body.u8(12)?);
        self.openflow_field("capabilities", body.u32(16)?, &CAPABILITIES);
        let actions: [(u32, &str); 12] = std::array::from_fn(|index| (1 << index, ACTIONS[index]));
        self.openflow_field("actions", body.u32(20)?, &actions);
        let mut rest = body.from(24);
        while rest.len > 0 {
            if rest.len < PORT {
                return WRONG;
            }
            self.openflow10_port_description(rest.first(PORT))?;
            rest = rest.from(PORT);
        }
        RIGHT
    }

    fn openflow10_port_description(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.openflow10_port("\n\t  port_no ", bytes.u16(0)?);
        self.openflow_mac(", hw_addr ", bytes.mac(2)?);
        self.openflow_text(", name '", bytes.from(8), 16)?;
        if self.options.verbose < 2 {
            return bytes.get(0, PORT).map(drop);
        }
        self.openflow_field("  config", bytes.u32(24)?, &PORT_CONFIGURATION);
        let state = bytes.u32(28)?;
        let tree = ["STP_LISTEN", "STP_LEARN", "STP_FORWARD", "STP_BLOCK"][(state >> 8 & 3) as usize];
        put!(self, "\n\t   state 0x{state:08x} ({tree}");
        self.text(if state & 1 != 0 { ", LINK_DOWN)" } else { ")" });
        self.text(bogus(state & !0x301 != 0));
        for (number, name) in ["  curr", "  advertised", "  supported", "  peer"].into_iter().enumerate() {
            self.openflow_field(name, bytes.u32(32 + 4 * number)?, &PORT_FEATURES);
        }
        Ok(())
    }

    fn openflow10_port(&mut self, what: &str, port: u16) {
        self.text(what);
        match port {
            0xff00 => self.text("MAX"),
            0xfff8 => self.text("IN_PORT"),
            0xfff9 => self.text("TABLE"),
            0xfffa => self.text("NORMAL"),
            0xfffb => self.text("FLOOD"),
            0xfffc => self.text("ALL"),
            CONTROLLER => self.text("CONTROLLER"),
            0xfffe => self.text("LOCAL"),
            0xffff => self.text("NONE"),
            _ => self.number(port),
        }
    }

    fn openflow10_vlan(&mut self, what: &str, vlan: u16) {
        self.text(what);
        match vlan {
            0xffff => self.text("NONE"),
            _ => put!(self, "{vlan}{}", bogus(!(1..4095).contains(&vlan))),
        }
    }

    fn openflow10_table(&mut self, what: &str, table: u8) {
        self.text(what);
        match table {
            254 => self.text("EMERG"),
            255 => self.text("ALL"),
            _ => self.number(table),
        }
    }

    fn openflow10_reason(&mut self, what: &str, names: &[&str], unknown: &str, reason: u8) {
        self.text(what);
        match names.get(usize::from(reason)) {
            Some(name) => self.text(name),
            None => put!(self, "{unknown} (0x{reason:02x})"),
        }
    }

    fn openflow10_buffer(&mut self, what: &str, buffer: u32) {
        self.text(what);
        match buffer {
            NO_BUFFER => self.text("NONE"),
            _ => put!(self, "0x{buffer:08x}"),
        }
    }

    fn openflow10_nonzero(&mut self, what: &str, value: u16) {
        if value > 0 {
            put!(self, "{what}{value}");
        }
    }

    /// Prints what a match looks at, with `before` in front of each field.
    fn openflow10_match(&mut self, before: &str, bytes: Bytes<'_>) -> Result<(), Cut> {
        let wildcards = bytes.u32(0)?;
        let wanted = |bit: u32| wildcards & bit == 0;
        let known = WILDCARDS.iter().fold(PREFIXES, |known, (bit, _)| known | bit);
        if wildcards & !known != 0 {
            put!(self, "{before}wildcards 0x{wildcards:08x} (bogus)");
        }
        let port = bytes.u16(4)?;
        if wanted(1) {
            self.text(before);
            self.openflow10_port("match in_port ", port);
        }
        for (bit, name, at) in [(4, "dl_src", 6), (8, "dl_dst", 12)] {
            let address = bytes.mac(at)?;
            if wanted(bit) {
                put!(self, "{before}match {name} ");
                self.mac(address);
            }
        }
        let vlan = bytes.u16(18)?;
        if wanted(2) {
            self.text(before);
            self.openflow10_vlan("match dl_vlan ", vlan);
        }
        let priority = bytes.u8(20)?;
        if wanted(0x10_0000) {
            put!(self, "{before}match dl_vlan_pcp {priority}{}", bogus(priority > 7));
        }
        let ethertype = bytes.u16(22)?;
        if wanted(0x10) {
            put!(self, "{before}match dl_type 0x{ethertype:04x}");
        }
        let tos = bytes.u8(24)?;
        if wanted(0x20_0000) {
            put!(self, "{before}match nw_tos 0x{tos:02x}");
        }
        let protocol = bytes.u8(25)?;
        if wanted(0x20) {
            let name = if wanted(0x10) && ethertype == 0x0806 { "arp_opcode" } else { "nw_proto" };
            put!(self, "{before}match {name} {protocol}");
        }
        for (shift, name, at) in [(8, "nw_src", 28), (14, "nw_dst", 32)] {
            let ignored = wildcards >> shift & 63;
            let address = bytes.ip4(at)?;
            if ignored < 32 {
                put!(self, "{before}match {name} ");
                self.ip4_address(address);
                put!(self, "/{}", 32 - ignored);
            }
        }
        let icmp = wanted(0x10) && ethertype == 0x0800 && wanted(0x20) && protocol == 1;
        let names = if icmp { ["icmp_type", "icmp_code"] } else { ["tp_src", "tp_dst"] };
        for (number, name) in names.into_iter().enumerate() {
            let port = bytes.u16(36 + 2 * number)?;
            if wanted(0x40 << number) {
                put!(self, "{before}match {name} {port}");
            }
        }
        Ok(())
    }

    fn openflow10_actions(&mut self, before: &str, mut rest: Bytes<'_>) -> Body {
        while rest.len > 0 {
            if rest.len < ACTION {
                return WRONG;
            }
            let kind = rest.u16(0)?;
            put!(self, "{before}action type ");
            match kind {
                0xffff => self.text("VENDOR"),
                _ => self.openflow_name(&ACTIONS, kind),
            }
            let len = usize::from(rest.u16(2)?);
            put!(self, ", len {len}");
            if len < ACTION || len > rest.len {
                return WRONG;
            }
            let wanted = match kind {
                4 | 5 | 11 => 16,
                0..=10 => 8,
                _ => len,
            };
            let value = rest.from(4).first(len - 4);
            if len != wanted {
                self.text(" (bogus)");
                value.get(0, value.len)?;
            } else {
                self.openflow10_action(kind, value)?;
            }
            rest = rest.from(len);
        }
        RIGHT
    }

    fn openflow10_action(&mut self, kind: u16, value: Bytes<'_>) -> Result<(), Cut> {
        match kind {
            0 => {
                let port = value.u16(0)?;
                self.openflow10_port(", port ", port);
                let len = value.u16(2)?;
                if port == CONTROLLER {
                    put!(self, ", max_len {len}");
                }
            }
            1 => {
                self.openflow10_vlan(", vlan_vid ", value.u16(0)?);
            }
            2 => {
                let priority = value.u8(0)?;
                put!(self, ", vlan_pcp {priority}{}", bogus(priority > 7));
            }
            4 | 5 => {
                self.openflow_mac(", dl_addr ", value.mac(0)?);
            }
            6 | 7 => {
                let address = value.ip4(0)?;
                self.text(", nw_addr ");
                self.ip4_address(address);
            }
            8 => put!(self, ", nw_tos 0x{:02x}", value.u8(0)?),
            9 | 10 => put!(self, ", tp_port {}", value.u16(0)?),
            11 => {
                self.openflow10_port(", port ", value.u16(0)?);
                put!(self, ", queue_id {}", value.u32(8)?);
            }
            0xffff => {
                self.openflow_vendor(", vendor ", value.u32(0)?);
                return self.openflow_data(value.from(4));
            }
            _ => {}
        }
        value.get(0, value.len).map(drop)
    }

    fn openflow10_packet_out(&mut self, body: Bytes<'_>) -> Body {
        put!(self, "\n\t buffer_id 0x{:08x}", body.u32(0)?);
        self.openflow10_port(", in_port ", body.u16(4)?);
        let len = usize::from(body.u16(6)?);
        let rest = body.from(8);
        if len > rest.len {
            return WRONG;
        }
        let actions = rest.first(len);
        if self.openflow10_actions("\n\t ", actions)?.is_err() {
            self.invalid(actions)?;
        }
        self.openflow_frame(rest.from(len))?;
        RIGHT
    }

    fn openflow10_flow(&mut self, body: Bytes<'_>) -> Body {
        self.openflow10_match("\n\t ", body)?;
        put!(self, "\n\t cookie 0x{:016x}", body.u64(MATCH)?);
        let command = body.u16(48)?;
        self.text(", command ");
        self.openflow_name(&COMMANDS, command);
        for (name, at) in [(", idle_timeout ", 50), (", hard_timeout ", 52), (", priority ", 54)] {
            self.openflow10_nonzero(name, body.u16(at)?);
        }
        let buffer = body.u32(56)?;
        if command < 3 {
            self.openflow10_buffer(", buffer_id ", buffer);
        }
        let port = body.u16(60)?;
        if matches!(command, 3 | 4) {
            self.openflow10_port(", out_port ", port);
        }
        let flags = body.u16(62)?;
        put!(self, ", flags 0x{flags:04x}");
        self.openflow_bits(flags.into(), &FLOW_FLAGS);
        self.openflow10_actions("\n\t ", body.from(64))
    }

    fn openflow10_kind(&mut self, kind: u16) {
        self.text("\n\t type ");
        match kind {
            VENDOR => self.text("VENDOR"),
            _ => self.openflow_name(&STATISTICS, kind),
        }
    }

    fn openflow10_question(&mut self, body: Bytes<'_>) -> Body {
        let kind = body.u16(0)?;
        self.openflow10_kind(kind);
        let flags = body.u16(2)?;
        put!(self, ", flags 0x{flags:04x}");
        self.openflow_bits(flags.into(), &[]);
        let rest = body.from(4);
        match kind {
            DESCRIPTION | TABLES if rest.len > 0 => return WRONG,
            FLOWS | AGGREGATE => {
                if rest.len != MATCH + 4 {
                    return WRONG;
                }
                self.openflow10_match("\n\t ", rest)?;
                self.openflow10_table("\n\t table_id ", rest.u8(40)?);
                self.openflow10_port(", out_port ", rest.u16(42)?);
            }
            PORTS | QUEUES => {
                if rest.len != 8 {
                    return WRONG;
                }
                self.openflow10_port("\n\t port_no ", rest.u16(0)?);
                if kind == QUEUES {
                    match rest.u32(4)? {
                        0xffff_ffff => self.text(", queue_id ALL"),
                        queue => put!(self, ", queue_id {queue}"),
                    }
                }
            }
            VENDOR => return self.openflow10_vendor(rest),
            _ => {}
        }
        RIGHT
    }

    fn openflow10_vendor(&mut self, rest: Bytes<'_>) -> Body {
        if rest.len < 4 {
            return WRONG;
        }
        self.openflow_vendor(", vendor ", rest.u32(0)?);
        self.openflow_data(rest.from(4))?;
        RIGHT
    }

    fn openflow10_answer(&mut self, body: Bytes<'_>) -> Body {
        let kind = body.u16(0)?;
        self.openflow10_kind(kind);
        let flags = body.u16(2)?;
        put!(self, ", flags 0x{flags:04x}");
        self.openflow_bits(flags.into(), &[(1, "MORE")]);
        let mut rest = body.from(4);
        match kind {
            DESCRIPTION => {
                let fields = [("mfr", 256), ("hw", 256), ("sw", 256), ("serial", 32), ("dp", 256)];
                if rest.len != fields.iter().map(|(_, len)| len).sum::<usize>() {
                    return WRONG;
                }
                for (name, len) in fields {
                    let what = if len == 32 { "num" } else { "desc" };
                    put!(self, "\n\t  {name}_{what}");
                    self.openflow_text(" '", rest, len)?;
                    rest = rest.from(len);
                }
            }
            FLOWS => {
                while rest.len > 0 {
                    let Ok(len) = self.openflow10_flow_counters(rest)? else { return WRONG };
                    rest = rest.from(len);
                }
            }
            AGGREGATE => {
                if rest.len != 24 {
                    return WRONG;
                }
                put!(self, "\n\t packet_count {}", rest.u64(0)?);
                put!(self, ", byte_count {}", rest.u64(8)?);
                put!(self, ", flow_count {}", rest.u32(16)?);
            }
            TABLES | PORTS | QUEUES => {
                let size = match kind {
                    TABLES => TABLE,
                    PORTS => PORT_COUNTERS,
                    _ => QUEUE_COUNTERS,
                };
                while rest.len > 0 {
                    if rest.len < size {
                        return WRONG;
                    }
                    self.openflow10_counters(kind, rest.first(size))?;
                    rest = rest.from(size);
                }
            }
            VENDOR => return self.openflow10_vendor(rest),
            _ => {}
        }
        RIGHT
    }

    /// Prints a flow and what it has counted; returns its length.
    fn openflow10_flow_counters(&mut self, bytes: Bytes<'_>) -> Result<Result<usize, Invalid>, Cut> {
        if bytes.len < FLOW {
            return Ok(Err(Invalid));
        }
        let len = usize::from(bytes.u16(0)?);
        put!(self, "\n\t length {len}");
        if len < FLOW || len > bytes.len {
            return Ok(Err(Invalid));
        }
        self.openflow10_table(", table_id ", bytes.u8(2)?);
        self.openflow10_match("\n\t  ", bytes.from(4))?;
        put!(self, "\n\t  duration_sec {}", bytes.u32(44)?);
        put!(self, ", duration_nsec {}", bytes.u32(48)?);
        put!(self, ", priority {}", bytes.u16(52)?);
        put!(self, ", idle_timeout {}", bytes.u16(54)?);
        put!(self, ", hard_timeout {}", bytes.u16(56)?);
        put!(self, ", cookie 0x{:016x}", bytes.u64(64)?);
        put!(self, ", packet_count {}", bytes.u64(72)?);
        put!(self, ", byte_count {}", bytes.u64(80)?);
        let actions = bytes.from(FLOW).first(len - FLOW);
        if self.openflow10_actions("\n\t  ", actions)?.is_err() {
            self.invalid(actions)?;
        }
        Ok(Ok(len))
    }

    /// Prints what a table, a port or a queue has counted.
    fn openflow10_counters(&mut self, kind: u16, bytes: Bytes<'_>) -> Result<(), Cut> {
        if kind == TABLES {
            self.openflow10_table("\n\t table_id ", bytes.u8(0)?);
            self.openflow_text(", name '", bytes.from(4), 32)?;
            let wildcards = bytes.u32(36)?;
            put!(self, "\n\t  wildcards 0x{wildcards:08x}");
            self.openflow_bits(wildcards & !PREFIXES, &WILDCARDS);
            put!(self, "\n\t  max_entries {}", bytes.u32(40)?);
            put!(self, ", active_count {}", bytes.u32(44)?);
            put!(self, ", lookup_count {}", bytes.u64(48)?);
            put!(self, ", matched_count {}", bytes.u64(56)?);
            return Ok(());
        }
        self.openflow10_port("\n\t  port_no ", bytes.u16(0)?);
        if kind == QUEUES {
            put!(self, ", queue_id {}", bytes.u32(4)?);
            for (number, name) in ["tx_bytes", "tx_packets", "tx_errors"].into_iter().enumerate() {
                put!(self, ", {name} {}", bytes.u64(8 + 8 * number)?);
            }
            return Ok(());
        }
        if self.options.verbose < 2 {
            return bytes.get(0, PORT_COUNTERS).map(drop);
        }
        let names = [
            "rx_packets",
            "tx_packets",
            "rx_bytes",
            "tx_bytes",
            "rx_dropped",
            "tx_dropped",
            "rx_errors",
            "tx_errors",
            "rx_frame_err",
            "rx_over_err",
            "rx_crc_err",
            "collisions",
        ];
        for (number, name) in names.into_iter().enumerate() {
            put!(self, ", {name} {}", bytes.u64(8 + 8 * number)?);
        }
        Ok(())
    }

    fn openflow10_queues(&mut self, mut rest: Bytes<'_>) -> Body {
        while rest.len > 0 {
            if rest.len < 8 {
                return WRONG;
            }
            put!(self, "\n\t  queue_id {}", rest.u32(0)?);
            let len = usize::from(rest.u16(4)?);
            put!(self, ", len {len}");
            if len < 8 || len > rest.len {
                return WRONG;
            }
            let properties = rest.from(8).first(len - 8);
            if self.options.verbose < 2 {
                properties.get(0, properties.len)?;
            } else if self.openflow10_properties(properties)?.is_err() {
                self.invalid(properties)?;
            }
            rest = rest.from(len);
        }
        RIGHT
    }

    fn openflow10_properties(&mut self, mut rest: Bytes<'_>) -> Body {
        while rest.len > 0 {
            if rest.len < 8 {
                return WRONG;
            }
            let kind = rest.u16(0)?;
            self.text("\n\t   property ");
            self.openflow_name(&["NONE", "MIN_RATE"], kind);
            let len = usize::from(rest.u16(2)?);
            put!(self, ", len {len}");
            if len < 8 || len > rest.len {
                return WRONG;
            }
            if kind < 2 && len != [8, 16][usize::from(kind)] {
                self.text(" (bogus)");
            } else if kind == 1 {
                match rest.u16(8)? {
                    rate @ ..=1000 => put!(self, ", rate {}.{}%", rate / 10, rate % 10),
                    _ => self.text(", rate disabled"),
                }
            }
            rest.get(0, len)?;
            rest = rest.from(len);
        }
        RIGHT
    }
}

fn bogus(bogus: bool) -> &'static str {
    if bogus { " (bogus)" } else { "" }
}

/// Returns whether a message can have a body of this length.
pub(crate) fn fits(kind: u8, len: usize) -> bool {
    match kind {
        1 | 4 | 16 | 17 => len >= 4,
        5 | 7 | 18 | 19 => len == 0,
        6 => len >= 24,
        8 | 9 | 20 => len == 4,
        10 => len >= 10,
        11 => len == 80,
        12 => len == 8 + PORT,
        13 | 21 => len >= 8,
        14 => len >= 64,
        15 => len == 24,
        _ => true,
    }
}
