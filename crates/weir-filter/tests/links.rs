//! Every link layer that both dialects take apart, with packets made of what the standards say: both find the same, and libpcap
//! is asked, too.

#[path = "frames/different.rs"]
mod different;
mod frames;

use different::is_different;
use frames::*;
use weir_filter::interpret::Packet;
use weir_filter::{Dialect, compile};
use weir_judge::compiled::by_libpcap;
use weir_judge::{Libpcap, corpus, share};

/// What a link layer carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    Tcp,
    Udp,
    Tcp6,
    Arp,
    Mpls,
    Clnp,
    Esis,
    Isis,
}
use Carried::{Arp, Clnp, Esis, Isis, Mpls, Tcp, Tcp6, Udp};

const ALL: [Carried; 8] = [Tcp, Udp, Tcp6, Arp, Mpls, Clnp, Esis, Isis];
const ISO: [Carried; 3] = [Clnp, Esis, Isis];

impl Carried {
    /// IEEE's number; what ISO has made has none.
    fn ether_type(self) -> Option<u16> {
        match self {
            Tcp | Udp => Some(0x0800),
            Tcp6 => Some(0x86dd),
            Arp => Some(0x0806),
            Mpls => Some(0x8847),
            Clnp | Esis | Isis => None,
        }
    }

    /// RFC 1332, RFC 5072, RFC 3032, RFC 1377.
    fn ppp(self) -> Option<u16> {
        match self {
            Tcp | Udp => Some(0x0021),
            Tcp6 => Some(0x0057),
            Mpls => Some(0x0281),
            Clnp | Esis | Isis => Some(0x0023),
            Arp => None,
        }
    }

    /// `AF_INET` and `AF_INET6`, whose number each system has chosen for itself.
    fn family(self, inet6: u32) -> Option<u32> {
        match self {
            Tcp | Udp => Some(2),
            Tcp6 => Some(inet6),
            _ => None,
        }
    }

    fn data(self) -> Vec<u8> {
        let (one, other) = ([10, 1, 2, 3], [192, 0, 2, 7]);
        match self {
            Tcp => ip4(one, other, 6, 0, &tcp(1024, 443)),
            Udp => ip4(one, other, 17, 0, &udp(1024, 53, &[0; 4])),
            Tcp6 => ip6(1, 2, 6, &tcp(1024, 443)),
            Arp => [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[2; 6], &one, &[0; 6], &other].concat(),
            Mpls => [&[0, 6, 0x41, 64][..], &Tcp.data()].concat(),
            // The numbers of ISO/IEC TR 9577; of IS-IS a hello of level 1 (ISO/IEC 10589).
            Clnp => [&[0x81, 30, 1, 64, 0x1c][..], &[0; 40]].concat(),
            Esis => [&[0x82, 30, 1, 0, 2][..], &[0; 40]].concat(),
            Isis => [&[0x83, 27, 1, 0, 15, 1, 0, 0][..], &[0; 40]].concat(),
        }
    }
}

/// A link layer.
struct Link {
    link_type: u16,
    name: &'static str,
    /// What libpcap finds on it, too.
    shared: &'static [Carried],
    /// What is in front of something, if it can be carried.
    header: fn(Carried) -> Option<Vec<u8>>,
}

const fn link(
    link_type: u16,
    name: &'static str,
    shared: &'static [Carried],
    header: fn(Carried) -> Option<Vec<u8>>,
) -> Link {
    Link { link_type, name, shared, header }
}

const IP: &[Carried] = &[Tcp, Udp, Tcp6];

const LINKS: [Link; 22] = [
    link(1, "Ethernet", &ALL, |carried| {
        let length = u16::try_from(3 + carried.data().len()).expect("short");
        Some(ethernet(&[], carried.ether_type().unwrap_or(length), llc(carried)))
    }),
    link(0, "null of NetBSD and OpenBSD", IP, |carried| Some(carried.family(24)?.to_ne_bytes().to_vec())),
    link(0, "null of FreeBSD", IP, |carried| Some(carried.family(28)?.to_ne_bytes().to_vec())),
    link(0, "null of macOS", IP, |carried| Some(carried.family(30)?.to_ne_bytes().to_vec())),
    link(0, "null of Linux", &[Tcp, Udp], |carried| Some(carried.family(10)?.to_ne_bytes().to_vec())),
    link(108, "loop of NetBSD and OpenBSD", IP, |carried| Some(carried.family(24)?.to_be_bytes().to_vec())),
    link(108, "loop of FreeBSD", IP, |carried| Some(carried.family(28)?.to_be_bytes().to_vec())),
    link(108, "loop of macOS", IP, |carried| Some(carried.family(30)?.to_be_bytes().to_vec())),
    link(108, "loop of Linux", &[Tcp, Udp], |carried| Some(carried.family(10)?.to_be_bytes().to_vec())),
    link(9, "PPP", &[Tcp, Udp, Tcp6, Clnp, Esis, Isis], |carried| {
        Some([[0xff, 0x03], carried.ppp()?.to_be_bytes()].concat())
    }),
    link(9, "PPP without its first bytes", &[], |carried| Some(carried.ppp()?.to_be_bytes().to_vec())),
    link(50, "PPP in HDLC", &[Tcp, Udp, Tcp6, Clnp, Esis, Isis], |carried| {
        Some([[0xff, 0x03], carried.ppp()?.to_be_bytes()].concat())
    }),
    link(50, "Cisco's HDLC where PPP may be", &[], |carried| {
        let carried = Some(carried).filter(|carried| *carried != Mpls)?;
        Some([[0x0f, 0], carried.ether_type()?.to_be_bytes()].concat())
    }),
    link(51, "PPPoE", &[Tcp, Udp, Tcp6, Clnp, Esis, Isis], |carried| {
        Some([&[0x11, 0, 0, 17, 0, 60][..], &carried.ppp()?.to_be_bytes()].concat())
    }),
    link(104, "Cisco's HDLC", &ALL, |carried| Some(hdlc(0x0f, carried))),
    link(104, "Cisco's HDLC, multicast", &ALL, |carried| Some(hdlc(0x8f, carried))),
    link(113, "cooked", &[Tcp, Udp, Tcp6, Arp, Mpls], |carried| {
        let number = carried.ether_type().unwrap_or(4).to_be_bytes();
        Some([&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], &number[..], llc(carried)].concat())
    }),
    link(276, "cooked, version 2", &[Tcp, Udp, Tcp6, Arp, Mpls], |carried| {
        let number = carried.ether_type().unwrap_or(4).to_be_bytes();
        let rest = [0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
        Some([&number[..], &rest, llc(carried)].concat())
    }),
    link(101, "raw", IP, |carried| carried.family(0).map(|_| Vec::new())),
    link(12, "raw, by another number", IP, |carried| carried.family(0).map(|_| Vec::new())),
    link(228, "IPv4", IP, |carried| matches!(carried, Tcp | Udp).then(Vec::new)),
    link(229, "IPv6", IP, |carried| (carried == Tcp6).then(Vec::new)),
];

impl Link {
    /// Packets, and whether both dialects know what they are.
    fn packets(&self) -> impl Iterator<Item = (Carried, Vec<u8>, bool)> {
        let packet = |carried| Some((carried, [(self.header)(carried)?, carried.data()].concat()));
        let shared = |(carried, data)| (carried, data, self.shared.contains(&carried));
        ALL.into_iter().filter_map(packet).map(shared)
    }
}

/// Of what has no EtherType (ISO/IEC 8802-2).
fn llc(carried: Carried) -> &'static [u8] {
    if carried.ether_type().is_some() { &[] } else { &[0xfe, 0xfe, 0x03] }
}

/// For ISO's protocols 0xfefe, and a byte of padding (linktypes.html).
fn hdlc(address: u8, carried: Carried) -> Vec<u8> {
    let number =
        carried.ether_type().map_or_else(|| vec![0xfe, 0xfe, 0x03], |number| number.to_be_bytes().to_vec());
    [vec![address, 0], number].concat()
}

/// What is asked, and what it is.
const ASKED: [(&str, &[Carried]); 27] = [
    ("ip", &[Tcp, Udp]),
    ("ip6", &[Tcp6]),
    ("arp", &[Arp]),
    ("ether proto 0x800", &[Tcp, Udp]),
    ("ether proto 0x86dd", &[Tcp6]),
    ("ether proto 0x806", &[Arp]),
    ("ether proto 0x8847", &[Mpls]),
    ("ether proto 0x800 or ether proto 0x86dd", &[Tcp, Udp, Tcp6]),
    ("ether proto 0x800 or tcp", &[Tcp, Udp, Tcp6]),
    ("tcp or ether proto 0x800", &[Tcp, Udp, Tcp6]),
    ("ether proto 0x86dd or udp", &[Udp, Tcp6]),
    ("ether proto 0x800 and udp", &[Udp]),
    ("ether proto 0x800 and ip6", &[]),
    ("ether proto 0x86dd and tcp port 443", &[Tcp6]),
    ("not ether proto 0x800", &[Tcp6, Arp, Mpls, Clnp, Esis, Isis]),
    ("not ether proto 0x800 and not arp", &[Tcp6, Mpls, Clnp, Esis, Isis]),
    ("tcp", &[Tcp, Tcp6]),
    ("tcp port 443", &[Tcp, Tcp6]),
    ("host 10.1.2.3 and ip", &[Tcp, Udp]),
    ("iso", &ISO),
    ("clnp", &[Clnp]),
    ("esis", &[Esis]),
    ("isis", &[Isis]),
    ("iso proto 0x83", &[Isis]),
    ("iih", &[Isis]),
    ("lsp", &[]),
    ("iso or tcp", &[Tcp, Tcp6, Clnp, Esis, Isis]),
];

/// What libpcap, and so the dialect `pcap`, reads at another place than it is.
fn is_misread(link_type: u16, text: &str) -> bool {
    // It forgets the byte of padding.
    link_type == 104 && ["iih", "l1", "l2", "lsp", "snp", "csnp", "psnp", "isis proto 15"].contains(&text)
}

#[test]
fn each_link_layer_is_understood_as_the_standards_have_it() {
    let libpcap = Libpcap::open().expect("libpcap is installed");
    let mut agreed = 0;
    for link in LINKS {
        let link_type = link.link_type;
        for (text, wanted) in ASKED {
            let judge = by_libpcap(&libpcap, text, &options(Dialect::Pcap, link_type), false);
            let judge = judge.unwrap_or_else(|error| panic!("{}, libpcap: {text}: {error}", link.name));
            let [ours, pcap] =
                [Dialect::Weir, Dialect::Pcap].map(|dialect| compiled(text, &options(dialect, link_type)));
            for (carried, data, shared) in link.packets() {
                let asked = format!("{}: `{text}` of {carried:?}", link.name);
                let packet =
                    Packet { data: &data, length: data.len().try_into().unwrap(), ..Packet::default() };
                let expected = wanted.contains(&carried);
                assert_eq!(accepts(&ours, &data), expected, "{asked}");
                let theirs = judge.run(&packet) != 0;
                assert_eq!(accepts(&pcap, &data), theirs, "{asked}, by libpcap");
                if shared && !is_misread(link_type, text) {
                    assert_eq!(theirs, expected, "{asked}, by libpcap");
                    agreed += 1;
                }
            }
        }
    }
    assert!(agreed > 1500, "{agreed}");
}

#[test]
fn the_dialects_agree_on_each_link_layer() {
    let mut texts: Vec<&str> = corpus::pcap().into_iter().map(|entry| entry.text).collect();
    texts.sort_unstable();
    texts.dedup();
    let (mut compared, mut accepted) = (0, 0);
    let texts = share(2, texts);
    for link in LINKS {
        let link_type = link.link_type;
        for text in texts.iter().filter(|text| !is_misread(link_type, text) && !is_different(text)) {
            let [ours, pcap] =
                [Dialect::Weir, Dialect::Pcap].map(|dialect| compile(text, &options(dialect, link_type)));
            let (Ok(ours), Ok(pcap)) = (ours, pcap) else { continue };
            for (carried, data, _) in link.packets().filter(|(.., shared)| *shared) {
                let [ours, pcap] = [&ours, &pcap].map(|filter| accepts(filter, &data));
                assert_eq!(ours, pcap, "{}: `{text}` of {carried:?}", link.name);
                accepted += u32::from(ours);
                compared += 1;
            }
        }
    }
    assert!(compared > 10_000 && accepted > 2000, "{compared}, {accepted}");
}
