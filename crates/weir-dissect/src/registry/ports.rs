//! Which protocol a TCP or UDP port identifies.

use weir_packet::port;

use crate::Printer;
use crate::application::textual;
use crate::base::bytes::Cut;
use crate::base::segment::Segment;

/// Prints a payload.
pub(crate) type Read = fn(&mut Printer<'_>, Segment<'_>) -> Result<(), Cut>;

fn tcp(port: u16) -> Option<Read> {
    Some(match port {
        21 => |printer, segment| printer.textual(&textual::FTP, segment),
        22 => |printer, segment| {
            printer.ssh(segment.payload);
            Ok(())
        },
        23 => |printer, segment| printer.telnet(segment.payload),
        25 => |printer, segment| printer.textual(&textual::SMTP, segment),
        43 => |printer, segment| printer.textual(&textual::WHOIS, segment),
        53 => |printer, segment| printer.dns_over_tcp(segment.payload),
        80 | 8080 => |printer, segment| printer.textual(&textual::HTTP, segment),
        #[cfg(feature = "routing")]
        179 => |printer, segment| printer.bgp(segment.payload),
        554 | 8554 => |printer, segment| printer.textual(&textual::RTSP, segment),
        #[cfg(feature = "routing")]
        646 => |printer, segment| printer.ldp(segment.payload),
        1723 => |printer, segment| printer.pptp(segment.payload),
        2049 => |printer, segment| printer.nfs(segment),
        6379 => |printer, segment| printer.resp(segment.payload),
        6633 | 6653 => |printer, segment| printer.openflow(segment.payload),
        _ => return None,
    })
}

/// `to`: whether it is the destination's. Some ports identify a protocol only then.
fn udp(port: u16, to: bool) -> Option<Read> {
    Some(match port {
        53 => |printer, segment| printer.dns(segment.payload, false),
        67 | 68 => |printer, segment| printer.bootp(segment.payload),
        69 => |printer, segment| printer.tftp(segment.payload),
        88 | 750 => |printer, segment| printer.kerberos(segment.payload),
        123 => |printer, segment| printer.ntp(segment.payload),
        161 | 162 => |printer, segment| printer.snmp(segment.payload),
        319 | 320 => |printer, segment| printer.ptp(segment.payload),
        500 => |printer, segment| printer.ike(segment),
        514 => |printer, segment| printer.syslog(segment.payload),
        #[cfg(feature = "routing")]
        520 => |printer, segment| printer.rip(segment.payload),
        #[cfg(feature = "routing")]
        521 => |printer, segment| printer.ripng(segment.payload),
        546 | 547 => |printer, segment| printer.dhcp6(segment.payload),
        #[cfg(feature = "routing")]
        646 => |printer, segment| printer.ldp(segment.payload),
        1645 | 1646 | 1812 | 1813 | 3799 => |printer, segment| printer.radius(segment.payload),
        1701 => |printer, segment| printer.l2tp(segment.payload),
        1985 if to => |printer, segment| printer.hsrp(segment.payload),
        2049 => |printer, segment| printer.nfs(segment),
        #[cfg(feature = "routing")]
        3503 => |printer, segment| printer.lsp_ping(segment.payload),
        #[cfg(feature = "routing")]
        3784 | 3785 | 4784 | 6784 if to => |printer, segment| printer.bfd(segment),
        #[cfg(feature = "routing")]
        4342 => |printer, segment| printer.lisp(segment.payload),
        4500 => |printer, segment| printer.ike_or_esp(segment),
        port::VXLAN | port::LINUX_VXLAN => |printer, segment| printer.vxlan(segment.payload),
        4790 => |printer, segment| printer.vxlan_gpe(segment.payload),
        5060 => |printer, segment| printer.textual(&textual::SIP, segment),
        5353 => |printer, segment| printer.dns(segment.payload, true),
        port::GENEVE => |printer, segment| printer.geneve(segment.payload),
        6343 => |printer, segment| printer.sflow(segment.payload),
        #[cfg(feature = "routing")]
        6696 | 6697 => |printer, segment| printer.babel(segment.payload),
        7000..=7009 => |printer, segment| printer.rx(segment.payload),
        _ => return None,
    })
}

/// Returns what prints the payload, if a port is known. The smaller one decides: it is more likely the service's.
pub(crate) fn reader(segment: &Segment<'_>) -> Option<Read> {
    let known = |port| if segment.tcp { tcp(port) } else { udp(port, port == segment.destination) };
    let (low, high) = (segment.source.min(segment.destination), segment.source.max(segment.destination));
    known(low).or_else(|| known(high))
}
