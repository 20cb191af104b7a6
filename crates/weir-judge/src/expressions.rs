//! Random expressions in the grammar of pcap-filter(7) and of the dialect `weir`. Most are valid; some are not
//! (`udp[0:4] / 0 = 1`, `ether port 80`), and every compiler has to reject these.

use crate::choices::Choices;

/// The vocabulary of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// pcap-filter(7).
    Pcap,
    /// pcap-filter(7) plus sets, `inner` and `tunnel`.
    Weir,
}

/// Returns an expression for Ethernet.
pub fn expression(words: Words, choices: &mut Choices<'_>) -> String {
    let terms = 1 + choices.below(5);
    let mut text = term(words, choices);
    for _ in 1..terms {
        let joint = choices.pick(&[" and ", " or ", " and not "]);
        let next = term(words, choices);
        text = match choices.below(5) {
            0 => format!("({text}){joint}{next}"),
            1 => format!("{next}{joint}({text})"),
            2 => format!("not ({text}){joint}{next}"),
            3 if words == Words::Weir => format!("inner({text}){joint}{next}"),
            _ => format!("{text}{joint}{next}"),
        };
    }
    text
}

fn term(words: Words, choices: &mut Choices<'_>) -> String {
    if words == Words::Weir && choices.one_in(4) {
        return only_weir(choices);
    }
    match choices.below(12) {
        0 => choices.pick(PROTOCOLS).to_owned(),
        1 => format!("{} {}", qualified(choices, &["", "ip ", "arp ", "rarp "], "host"), ipv4(choices)),
        2 => format!("{} {}", qualified(choices, &["", "ip6 "], "host"), ipv6(choices)),
        3 => format!("{} {}", qualified(choices, &["", "ip ", "arp "], "net"), net(choices)),
        4 => format!("{} {}", qualified(choices, &["", "tcp ", "udp ", "sctp "], "port"), port(choices)),
        5 => {
            let (first, last) = (port(choices), port(choices));
            format!("{} {first}-{last}", qualified(choices, &["", "tcp ", "udp "], "portrange"))
        }
        6 => format!("{} {}", qualified(choices, &["ether "], "host"), mac(choices)),
        7 => format!("{}proto {}", choices.pick(&["ip ", "ip6 ", "ether ", ""]), protocol_number(choices)),
        8 => link(choices),
        9 | 10 => relation(choices),
        _ => choices.pick(OTHERS).to_owned(),
    }
}

const PROTOCOLS: &[&str] = &[
    "tcp", "udp", "ip", "ip6", "icmp", "icmp6", "arp", "sctp", "igmp", "rarp", "ah", "esp", "pim", "vrrp",
    "igrp", "stp", "iso", "ipx", "netbeui", "atalk", "aarp", "decnet", "clnp", "isis", "l1", "lsp", "carp",
];

const OTHERS: &[&str] = &[
    "broadcast",
    "multicast",
    "ip multicast",
    "ip6 multicast",
    "less 100",
    "greater 64",
    "llc",
    "llc i",
    "llc ui",
    "pppoed",
    "byte 12 = 8",
    "ether broadcast",
    "len > 100",
];

fn only_weir(choices: &mut Choices<'_>) -> String {
    match choices.below(6) {
        0 => {
            let members = [ipv4(choices), net(choices), ipv6(choices)].join(", ");
            format!("{} in {{{members}}}", qualified(choices, &["", "ip ", "ip6 "], "host"))
        }
        1 => {
            let members = format!("{}, {}, 8000-8100", port(choices), port(choices));
            format!("{} in {{{members}}}", qualified(choices, &["", "tcp ", "udp "], "port"))
        }
        2 => format!("{} in {{{}, {}}}", qualified(choices, &["ether "], "host"), mac(choices), mac(choices)),
        3 => "vlan in {5, 7, 100-200}".to_owned(),
        4 => format!("vxlan {}", choices.pick(&[100, 5000])),
        _ => "tunnel".to_owned(),
    }
}

fn qualified(choices: &mut Choices<'_>, protocols: &[&str], kind: &str) -> String {
    let direction = choices.pick(&["", "src ", "dst ", "src or dst ", "src and dst "]);
    format!("{}{direction}{kind}", choices.pick(protocols))
}

fn ipv4(choices: &mut Choices<'_>) -> String {
    choices.pick(&["10.1.2.3", "10.1.2.4", "192.168.7.8", "224.0.0.5", "198.51.100.1"]).to_owned()
}

fn ipv6(choices: &mut Choices<'_>) -> String {
    choices.pick(&["2001:db8::1", "2001:db8::2", "fe80::1", "ff02::1", "::1"]).to_owned()
}

fn net(choices: &mut Choices<'_>) -> String {
    choices.pick(&["10.0.0.0/8", "10.1.2.0/24", "192.168.0.0/16", "0.0.0.0/0", "10.1.2.3/32"]).to_owned()
}

fn mac(choices: &mut Choices<'_>) -> String {
    choices.pick(&["00:11:22:33:44:55", "00:11:22:33:44:66", "ff:ff:ff:ff:ff:ff"]).to_owned()
}

fn port(choices: &mut Choices<'_>) -> u16 {
    choices.pick(&[80, 443, 53, 22, 8080, 1000, 0, 65535])
}

fn protocol_number(choices: &mut Choices<'_>) -> &'static str {
    choices.pick(&["6", "17", "\\tcp", "1", "58", "0", "44", "0x800", "0x86dd", "0x42", "47"])
}

fn link(choices: &mut Choices<'_>) -> String {
    let word =
        choices.pick(&["vlan", "vlan 5", "vlan 7", "mpls", "mpls 100", "pppoes", "pppoes 17", "geneve"]);
    word.to_owned()
}

fn relation(choices: &mut Choices<'_>) -> String {
    let left = arithmetic(choices, 2);
    let sign = choices.pick(&["=", "!=", ">", "<", ">=", "<="]);
    let right = if choices.one_in(4) { arithmetic(choices, 1) } else { number(choices).to_owned() };
    format!("{left} {sign} {right}")
}

fn arithmetic(choices: &mut Choices<'_>, depth: u8) -> String {
    let Some(deeper) = depth.checked_sub(1) else { return accessor(choices) };
    match choices.below(6) {
        0 | 1 => accessor(choices),
        2 => format!("({} {} {})", arithmetic(choices, deeper), operation(choices), number(choices)),
        3 => format!("({} {} {})", arithmetic(choices, deeper), operation(choices), accessor(choices)),
        4 => format!("{}[{} & 0x3c]", choices.pick(&["ip", "tcp", "ether"]), arithmetic(choices, deeper)),
        _ => choices.pick(&["len", "-ip[8]", "tcp[tcpflags] & tcp-syn"]).to_owned(),
    }
}

fn accessor(choices: &mut Choices<'_>) -> String {
    let protocol =
        choices.pick(&["ip", "tcp", "udp", "ether", "ip6", "icmp", "arp", "icmp6", "sctp", "link", "igmp"]);
    let index = choices.pick(&["0", "2", "9", "12", "13", "6", "40", "100", "0xffffffff", "4294967280"]);
    let size = choices.pick(&["", ":2", ":4", ":1"]);
    format!("{protocol}[{index}{size}]")
}

fn operation(choices: &mut Choices<'_>) -> &'static str {
    choices.pick(&["&", "+", "-", "*", "/", "%", "|", "^", "<<", ">>"])
}

fn number(choices: &mut Choices<'_>) -> &'static str {
    choices.pick(&["2", "0", "6", "0xf", "80", "0x800", "255", "33", "0xffffffff", "65535", "1000"])
}
