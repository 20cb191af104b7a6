//! What prints the payload of a TCP or UDP port: `weir_parse::Application` says what speaks on it.

use weir_parse::Application;

use crate::Printer;
use crate::application::textual;
use crate::base::bytes::Cut;
use crate::base::segment::Segment;

/// Prints a payload.
pub(crate) type Read = fn(&mut Printer<'_>, Segment<'_>) -> Result<(), Cut>;

/// Returns what prints a segment, by its ports.
pub(crate) fn reader(segment: &Segment<'_>) -> Option<Read> {
    let ports = [segment.source, segment.destination];
    Some(match Application::of(segment.is_tcp(), ports)? {
        #[cfg(feature = "routing")]
        Application::Babel => |printer, segment| printer.babel(segment.payload),
        #[cfg(feature = "routing")]
        Application::Bfd => |printer, segment| printer.bfd(segment),
        #[cfg(feature = "routing")]
        Application::Bgp => |printer, segment| printer.bgp(segment.payload),
        Application::Bootp => |printer, segment| printer.bootp(segment.payload),
        Application::Dhcp6 => |printer, segment| printer.dhcp6(segment.payload),
        Application::Dns if segment.is_tcp() => |printer, segment| printer.dns_over_tcp(segment.payload),
        Application::Dns => |printer, segment| printer.dns(segment.payload, false),
        Application::Ftp => |printer, segment| printer.textual(&textual::FTP, segment),
        Application::Geneve => |printer, segment| printer.geneve(segment.payload),
        Application::Hsrp => |printer, segment| printer.hsrp(segment.payload),
        Application::Http => |printer, segment| printer.textual(&textual::HTTP, segment),
        Application::Ike => |printer, segment| printer.ike(segment),
        Application::IkeOrEsp => |printer, segment| printer.ike_or_esp(segment),
        Application::Kerberos => |printer, segment| printer.kerberos(segment.payload),
        Application::L2tp => |printer, segment| printer.l2tp(segment.payload),
        #[cfg(feature = "routing")]
        Application::Ldp => |printer, segment| printer.ldp(segment.payload),
        #[cfg(feature = "routing")]
        Application::Lisp => |printer, segment| printer.lisp(segment.payload),
        #[cfg(feature = "routing")]
        Application::LspPing => |printer, segment| printer.lsp_ping(segment.payload),
        Application::MulticastDns => |printer, segment| printer.dns(segment.payload, true),
        Application::Nfs => |printer, segment| printer.nfs(segment),
        Application::Ntp => |printer, segment| printer.ntp(segment.payload),
        Application::OpenFlow => |printer, segment| printer.openflow(segment.payload),
        Application::Pptp => |printer, segment| printer.pptp(segment.payload),
        Application::Ptp => |printer, segment| printer.ptp(segment.payload),
        Application::Radius => |printer, segment| printer.radius(segment.payload),
        Application::Resp => |printer, segment| printer.resp(segment.payload),
        #[cfg(feature = "routing")]
        Application::Rip => |printer, segment| printer.rip(segment.payload),
        #[cfg(feature = "routing")]
        Application::Ripng => |printer, segment| printer.ripng(segment.payload),
        Application::Rtsp => |printer, segment| printer.textual(&textual::RTSP, segment),
        Application::Rx => |printer, segment| printer.rx(segment.payload),
        Application::Sflow => |printer, segment| printer.sflow(segment.payload),
        Application::Sip => |printer, segment| printer.textual(&textual::SIP, segment),
        Application::Smtp => |printer, segment| printer.textual(&textual::SMTP, segment),
        Application::Snmp => |printer, segment| printer.snmp(segment.payload),
        Application::Ssh => |printer, segment| {
            printer.ssh(segment.payload);
            Ok(())
        },
        Application::Syslog => |printer, segment| printer.syslog(segment.payload),
        Application::Telnet => |printer, segment| printer.telnet(segment.payload),
        Application::Tftp => |printer, segment| printer.tftp(segment.payload),
        Application::Vxlan => |printer, segment| printer.vxlan(segment.payload),
        Application::VxlanGpe => |printer, segment| printer.vxlan_gpe(segment.payload),
        Application::Whois => |printer, segment| printer.textual(&textual::WHOIS, segment),
        _ => return None,
    })
}
