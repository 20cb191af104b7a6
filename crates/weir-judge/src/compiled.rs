//! Expressions compiled by weir and by libpcap, for the same files.

use std::process::Command;

use weir_filter::cbpf;
use weir_filter::names::Names;
use weir_filter::{Beside, Dialect, Options};

use crate::{Libpcap, Setup};

/// A resolver that knows the protocols in the corpus, as every system does, and no other names.
#[derive(Clone, Copy, Debug)]
pub struct Protocols;

impl Names for Protocols {
    fn protocol(&self, name: &str) -> Option<u8> {
        let known =
            [("icmp", 1), ("igmp", 2), ("tcp", 6), ("udp", 17), ("esp", 50), ("ah", 51), ("sctp", 132)];
        known.into_iter().find_map(|(known, number)| (known == name).then_some(number))
    }
}

/// Returns options for files of this machine with packets of `link_type`.
pub fn options(dialect: Dialect, link_type: u16) -> Options<'static> {
    Options {
        dialect,
        link_type,
        snap_len: 262_144,
        metadata: Beside::Nothing,
        swapped: false,
        others: &[],
        netmask: None,
        names: &Protocols,
    }
}

/// Compiles with libpcap for the same files as `options`. Unless it is optimised, this is the meaning of `text` in the
/// dialect `pcap`.
///
/// # Errors
///
/// libpcap's message.
pub fn by_libpcap(
    libpcap: &Libpcap,
    text: &str,
    options: &Options<'_>,
    optimise: bool,
) -> Result<cbpf::Program, String> {
    let Options { link_type, snap_len, swapped, netmask, .. } = *options;
    let setup = Setup { link_type, snap_len, swapped, optimise, netmask };
    libpcap.compile(text, &setup).map(|program| program.classic())
}

/// Compiles with libpcap for packets of an interface with Ethernet headers, whose tags and directions are metadata.
/// Runs tcpdump on the loopback device, because libpcap must open the interface for this.
///
/// # Errors
///
/// tcpdump's message: tcpdump is not installed, privileges are missing, or the expression is invalid.
pub fn by_libpcap_live(text: &str, optimise: bool) -> Result<cbpf::Program, String> {
    let mut command = Command::new("tcpdump");
    command.args(["-i", "lo", "-ddd"]).args((!optimise).then_some("-O")).arg(text);
    let output = command.output().map_err(|error| format!("tcpdump: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    cbpf::Program::from_numbers(&String::from_utf8_lossy(&output.stdout)).map_err(|error| error.to_string())
}

/// Returns whether headers of the link type have a variable length.
fn is_variable(link_type: u16) -> bool {
    matches!(link_type, 105 | 117 | 119 | 127 | 163 | 192)
}

/// Returns whether the dialect `pcap` differs from libpcap 1.10 on purpose (docs/filter-pcap.md).
///
/// - `byte` with `&` and `|`: libpcap 1.10 does not load the byte, 1.11 does.
/// - Arithmetic before the first term that needs the payload, if the payload's offset is variable: libpcap computes
///   both in the same register, so that `5 = 5 and ip` finds no IP in 802.11.
pub fn is_mended(link_type: u16, text: &str) -> bool {
    let first = text.split(" and ").flat_map(|part| part.split(" or ")).next().unwrap_or_default();
    (text.contains("byte") && text.contains(['&', '|']))
        || (is_variable(link_type) && first.contains(['=', '<', '>', '[']))
}

/// Returns whether a generated expression may differ from libpcap: in the ways above, or because libpcap reads a
/// register that is unset or has been overwritten, in tunnels and with a variable payload offset.
pub fn may_be_mended(link_type: u16, text: &str) -> bool {
    let arithmetic = text.contains(['=', '<', '>', '[']);
    let tunnel = text.contains("geneve") || text.contains("pppoes");
    is_mended(link_type, text)
        || (text.contains("geneve") && arithmetic)
        || (is_variable(link_type) && (tunnel || arithmetic))
}
