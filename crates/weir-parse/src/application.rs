//! Which protocol a port stands for.

use weir_packet::port;

/// A protocol that programs speak over TCP or UDP, on ports of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "names of protocols")]
pub enum Application {
    Babel,
    Bfd,
    Bgp,
    Bootp,
    Dhcp6,
    Dns,
    Ftp,
    Geneve,
    Hsrp,
    Http,
    Ike,
    /// IKE or ESP in UDP (RFC 3948).
    IkeOrEsp,
    Kerberos,
    L2tp,
    Ldp,
    Lisp,
    LspPing,
    MulticastDns,
    Nfs,
    Ntp,
    OpenFlow,
    Pptp,
    Ptp,
    Radius,
    Resp,
    Rip,
    Ripng,
    Rtsp,
    Rx,
    Sflow,
    Sip,
    Smtp,
    Snmp,
    Ssh,
    Syslog,
    Telnet,
    Tftp,
    Vxlan,
    VxlanGpe,
    Whois,
}

impl Application {
    /// Returns what the ports of a segment stand for. The smaller one decides: it is more likely the service's.
    ///
    /// `ports`: source and destination.
    pub fn of(is_tcp: bool, ports: [u16; 2]) -> Option<Self> {
        let [source, destination] = ports;
        let known = |port| if is_tcp { tcp(port) } else { udp(port, port == destination) };
        known(source.min(destination)).or_else(|| known(source.max(destination)))
    }
}

fn tcp(port: u16) -> Option<Application> {
    use Application::*;
    Some(match port {
        21 => Ftp,
        22 => Ssh,
        23 => Telnet,
        25 => Smtp,
        43 => Whois,
        53 => Dns,
        80 | 8080 => Http,
        179 => Bgp,
        554 | 8554 => Rtsp,
        646 => Ldp,
        1723 => Pptp,
        2049 => Nfs,
        6379 => Resp,
        6633 | 6653 => OpenFlow,
        _ => return None,
    })
}

/// `to`: whether it is the destination's. Some ports identify a protocol only then.
fn udp(port: u16, to: bool) -> Option<Application> {
    use Application::*;
    Some(match port {
        53 => Dns,
        67 | 68 => Bootp,
        69 => Tftp,
        88 | 750 => Kerberos,
        123 => Ntp,
        161 | 162 => Snmp,
        319 | 320 => Ptp,
        500 => Ike,
        514 => Syslog,
        520 => Rip,
        521 => Ripng,
        546 | 547 => Dhcp6,
        646 => Ldp,
        1645 | 1646 | 1812 | 1813 | 3799 => Radius,
        1701 => L2tp,
        1985 if to => Hsrp,
        2049 => Nfs,
        3503 => LspPing,
        3784 | 3785 | 4784 | 6784 if to => Bfd,
        4342 => Lisp,
        4500 => IkeOrEsp,
        port::VXLAN | port::LINUX_VXLAN => Vxlan,
        4790 => VxlanGpe,
        5060 => Sip,
        5353 => MulticastDns,
        port::GENEVE => Geneve,
        6343 => Sflow,
        6696 | 6697 => Babel,
        7000..=7009 => Rx,
        _ => return None,
    })
}
