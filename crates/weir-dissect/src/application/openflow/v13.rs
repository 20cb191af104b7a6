//! OpenFlow 1.3, as far as tcpdump reads it: matches, flows and statistics are only named.

use crate::Printer;
use crate::application::openflow::codes::{
    Bits, Body, CONFIGURATION_FLAGS, PORT_CHANGES, RIGHT, VERSIONS, WRONG,
};
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of the description of a port.
const PORT: usize = 64;

const CAPABILITIES: [(u32, &str); 7] = [
    (1, "FLOW_STATS"),
    (2, "TABLE_STATS"),
    (4, "PORT_STATS"),
    (8, "GROUP_STATS"),
    (0x20, "IP_REASM"),
    (0x40, "QUEUE_STATS"),
    (0x100, "PORT_BLOCKED"),
];
const PORT_CONFIGURATION: [(u32, &str); 4] =
    [(1, "PORT_DOWN"), (4, "NO_RECV"), (0x20, "NO_FWD"), (0x40, "NO_PACKET_IN")];
const PORT_STATE: [(u32, &str); 3] = [(1, "LINK_DOWN"), (2, "BLOCKED"), (4, "LIVE")];
const PORT_FEATURES: [(u32, &str); 16] = [
    (1, "10MB_HD"),
    (2, "10MB_FD"),
    (4, "100MB_HD"),
    (8, "100MB_FD"),
    (0x10, "1GB_HD"),
    (0x20, "1GB_FD"),
    (0x40, "10GB_FD"),
    (0x80, "40GB_FD"),
    (0x100, "100GB_FD"),
    (0x200, "1TB_FD"),
    (0x400, "OTHER"),
    (0x800, "COPPER"),
    (0x1000, "FIBER"),
    (0x2000, "AUTONEG"),
    (0x4000, "PAUSE"),
    (0x8000, "PAUSE_ASYM"),
];
const PACKET_REASONS: [(u32, &str); 3] = [(1, "NO_MATCH"), (2, "ACTION"), (4, "INVALID_TTL")];
const PORT_REASONS: [(u32, &str); 3] = [(1, "ADD"), (2, "DELETE"), (4, "MODIFY")];
/// Which messages a controller wants. tcpdump names the reasons of the last two as those of ports.
const MASKS: [(&str, &Bits); 6] = [
    ("packet_in_mask[EM]", &PACKET_REASONS),
    ("packet_in_mask[S]", &PACKET_REASONS),
    ("port_status_mask[EM]", &PORT_REASONS),
    ("port_status_mask[S]", &PORT_REASONS),
    ("flow_removed_mask[EM]", &PORT_REASONS),
    ("flow_removed_mask[S]", &PORT_REASONS),
];
const ROLES: [&str; 4] = ["NOCHANGE", "EQUAL", "MASTER", "SLAVE"];
const ERRORS: [(&str, &[&str]); 14] = [
    ("HELLO_FAILED", &["INCOMPATIBLE", "EPERM"]),
    (
        "BAD_REQUEST",
        &[
            "BAD_VERSION",
            "BAD_TYPE",
            "BAD_MULTIPART",
            "BAD_EXPERIMENTER",
            "BAD_EXP_TYPE",
            "EPERM",
            "BAD_LEN",
            "BUFFER_EMPTY",
            "BUFFER_UNKNOWN",
            "BAD_TABLE_ID",
            "IS_SLAVE",
            "BAD_PORT",
            "BAD_PACKET",
            "MULTIPART_BUFFER_OVERFLOW",
        ],
    ),
    (
        "BAD_ACTION",
        &[
            "BAD_TYPE",
            "BAD_LEN",
            "BAD_EXPERIMENTER",
            "BAD_EXP_TYPE",
            "BAD_OUT_PORT",
            "BAD_ARGUMENT",
            "EPERM",
            "TOO_MANY",
            "BAD_QUEUE",
            "BAD_OUT_GROUP",
            "MATCH_INCONSISTENT",
            "UNSUPPORTED_ORDER",
            "BAD_TAG",
            "BAD_SET_TYPE",
            "BAD_SET_LEN",
            "BAD_SET_ARGUMENT",
        ],
    ),
    (
        "BAD_INSTRUCTION",
        &[
            "UNKNOWN_INST",
            "UNSUP_INST",
            "BAD_TABLE_ID",
            "UNSUP_METADATA",
            "UNSUP_METADATA_MASK",
            "BAD_EXPERIMENTER",
            "BAD_EXP_TYPE",
            "BAD_LEN",
            "EPERM",
        ],
    ),
    (
        "BAD_MATCH",
        &[
            "BAD_TYPE",
            "BAD_LEN",
            "BAD_TAG",
            "BAD_DL_ADDR_MASK",
            "BAD_NW_ADDR_MASK",
            "BAD_WILDCARDS",
            "BAD_FIELD",
            "BAD_VALUE",
            "BAD_MASK",
            "BAD_PREREQ",
            "DUP_FIELD",
            "EPERM",
        ],
    ),
    (
        "FLOW_MOD_FAILED",
        &[
            "UNKNOWN",
            "TABLE_FULL",
            "BAD_TABLE_ID",
            "OVERLAP",
            "EPERM",
            "BAD_TIMEOUT",
            "BAD_COMMAND",
            "BAD_FLAGS",
        ],
    ),
    (
        "GROUP_MOD_FAILED",
        &[
            "GROUP_EXISTS",
            "INVALID_GROUP",
            "WEIGHT_UNSUPPORTED",
            "OUT_OF_GROUPS",
            "OUT_OF_BUCKETS",
            "CHAINING_UNSUPPORTED",
            "WATCH_UNSUPPORTED",
            "LOOP",
            "UNKNOWN_GROUP",
            "CHAINED_GROUP",
            "BAD_TYPE",
            "BAD_COMMAND",
            "BAD_BUCKET",
            "BAD_MATCH",
            "EPERM",
        ],
    ),
    ("PORT_MOD_FAILED", &["BAD_PORT", "BAD_HW_ADDR", "BAD_CONFIG", "BAD_ADVERTISE", "EPERM"]),
    ("TABLE_MOD_FAILED", &["BAD_TABLE", "BAD_CONFIG", "EPERM"]),
    ("QUEUE_OP_FAILED", &["BAD_PORT", "BAD_QUEUE", "EPERM"]),
    ("SWITCH_CONFIG_FAILED", &["BAD_FLAGS", "BAD_LEN", "EPERM"]),
    ("ROLE_REQUEST_FAILED", &["STALE", "UNSUP", "BAD_ROLE"]),
    (
        "METER_MOD_FAILED",
        &[
            "UNKNOWN",
            "METER_EXISTS",
            "INVALID_METER",
            "UNKNOWN_METER",
            "BAD_COMMAND",
            "BAD_FLAGS",
            "BAD_RATE",
            "BAD_BURST",
            "BAD_BAND",
            "BAD_BAND_VALUE",
            "OUT_OF_METERS",
            "OUT_OF_BANDS",
        ],
    ),
    ("TABLE_FEATURES_FAILED", &["BAD_TABLE", "BAD_METADATA", "BAD_TYPE", "BAD_LEN", "BAD_ARGUMENT", "EPERM"]),
];

impl Printer<'_> {
    pub(crate) fn openflow13(&mut self, kind: u8, body: Bytes<'_>) -> Body {
        match kind {
            0 => return self.openflow_hello(body),
            1 => self.openflow_error(body, &ERRORS)?,
            2 | 3 => self.openflow_data(body)?,
            4 => {
                self.openflow_vendor("\n\t experimenter ", body.u32(0)?);
                put!(self, ", exp_type 0x{:08x}", body.u32(4)?);
                self.openflow_data(body.from(8))?;
            }
            6 => {
                put!(self, "\n\t dpid 0x{:016x}", body.u64(0)?);
                put!(self, ", n_buffers {}", body.u32(8)?);
                put!(self, ", n_tables {}", body.u8(12)?);
                put!(self, ", auxiliary_id {}", body.u8(13)?);
                self.openflow_field("capabilities", body.u32(16)?, &CAPABILITIES);
            }
            8 | 9 => {
                let flags = body.u16(0)?;
                self.text("\n\t flags ");
                self.openflow_name(&CONFIGURATION_FLAGS, flags);
                match body.u16(2)? {
                    0xffe5 => self.text(", miss_send_len MAX"),
                    0xffff => self.text(", miss_send_len NO_BUFFER"),
                    len => put!(self, ", miss_send_len {len}"),
                }
            }
            12 => {
                let reason = body.u8(0)?;
                // tcpdump's words, without the number.
                let name = PORT_CHANGES.get(usize::from(reason)).unwrap_or(&"invalid (0x02x)");
                put!(self, "\n\t reason {name}");
                self.openflow13_port_description(body.from(8))?;
            }
            16 => {
                self.openflow13_port("\n\t port_no ", body.u32(0)?);
                self.openflow_mac(", hw_addr ", body.mac(8)?);
                self.openflow_field(" config", body.u32(16)?, &PORT_CONFIGURATION);
                self.openflow_field(" mask", body.u32(20)?, &PORT_CONFIGURATION);
                self.openflow_field(" advertise", body.u32(24)?, &PORT_FEATURES);
            }
            17 => {
                match body.u8(0)? {
                    254 => self.text("\n\t table_id MAX"),
                    255 => self.text("\n\t table_id ALL"),
                    table => put!(self, "\n\t table_id {table}"),
                }
                put!(self, ", config 0x{:08x}", body.u32(4)?);
            }
            22 => {
                self.openflow13_port("\n\t port ", body.u32(0)?);
            }
            24 | 25 => {
                let role = body.u32(0)?;
                match ROLES.get(role as usize) {
                    Some(name) => put!(self, "\n\t role {name}"),
                    None => put!(self, "\n\t role invalid (0x{role:08x})"),
                }
                put!(self, ", generation_id 0x{:016x}", body.u64(8)?);
            }
            27 | 28 => {
                for (number, (name, bits)) in MASKS.iter().enumerate() {
                    self.openflow_field(name, body.u32(4 * number)?, bits);
                }
            }
            _ => {}
        }
        RIGHT
    }

    fn openflow13_port(&mut self, what: &str, port: u32) {
        self.text(what);
        match port {
            0xffff_ff00 => self.text("MAX"),
            0xffff_fff8 => self.text("IN_PORT"),
            0xffff_fff9 => self.text("TABLE"),
            0xffff_fffa => self.text("NORMAL"),
            0xffff_fffb => self.text("FLOOD"),
            0xffff_fffc => self.text("ALL"),
            0xffff_fffd => self.text("CONTROLLER"),
            0xffff_fffe => self.text("LOCAL"),
            0xffff_ffff => self.text("ANY"),
            _ => self.number(port),
        }
    }

    /// Prints which versions the sender speaks.
    fn openflow_hello(&mut self, mut rest: Bytes<'_>) -> Body {
        while rest.len > 0 {
            if rest.len < 4 {
                return WRONG;
            }
            let kind = rest.u16(0)?;
            match kind {
                1 => self.text("\n\t type VERSIONBITMAP"),
                _ => put!(self, "\n\t type unknown (0x{kind:04x})"),
            }
            let len = usize::from(rest.u16(2)?);
            put!(self, ", length {len}");
            if len < 4 || len > rest.len {
                return WRONG;
            }
            if kind == 1 && len != 8 {
                self.text(" (bogus)");
            } else if kind == 1 {
                let bits = rest.u32(4)?;
                put!(self, ", bitmap 0x{bits:08x}");
                let names: [(u32, &str); 6] = std::array::from_fn(|index| (1 << index, VERSIONS[index]));
                self.openflow_bits(bits, &names);
            }
            rest.get(0, len)?;
            rest = rest.from(len);
        }
        RIGHT
    }

    fn openflow13_port_description(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.openflow13_port("\n\t  port_no ", bytes.u32(0)?);
        self.openflow_mac(", hw_addr ", bytes.mac(8)?);
        self.openflow_text(", name '", bytes.from(16), 16)?;
        if self.options.verbose < 2 {
            return bytes.get(0, PORT).map(drop);
        }
        self.openflow_field("  config", bytes.u32(32)?, &PORT_CONFIGURATION);
        self.openflow_field("  state", bytes.u32(36)?, &PORT_STATE);
        for (number, name) in ["  curr", "  advertised", "  supported", "  peer"].into_iter().enumerate() {
            self.openflow_field(name, bytes.u32(40 + 4 * number)?, &PORT_FEATURES);
        }
        put!(self, "\n\t   curr_speed {}kbps", bytes.u32(56)?);
        put!(self, "\n\t   max_speed {}kbps", bytes.u32(60)?);
        Ok(())
    }
}

/// Returns whether a message can have a body of this length. Of those that are not read, any is right.
pub(crate) fn fits(kind: u8, len: usize) -> bool {
    match kind {
        1 => len >= 4,
        4 => len >= 8,
        5 | 7 | 20 | 21 | 26 => len == 0,
        6 | 27 | 28 => len == 24,
        8 | 9 => len == 4,
        12 => len == 8 + PORT,
        16 => len == 32,
        17 | 22 => len == 8,
        24 | 25 => len == 16,
        _ => true,
    }
}
