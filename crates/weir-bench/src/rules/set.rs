//! The same rules in the languages of all contestants.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// What becomes of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// The last rule drops them.
    Blocked,
    /// No rule is about them.
    Passes,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug)]
struct RuleText {
    /// Network of the sender, and the length of its prefix.
    net: (Ipv4Addr, u8),
    /// Ports of the sender.
    ports: (u16, u16),
    /// Address and port of the receiver.
    to: Option<(Ipv4Addr, u16)>,
}

/// Rules that drop.
#[derive(Debug)]
pub(super) struct RuleTexts(Vec<RuleText>);

/// Where frames of the lab come from, and go to: [`weir_lab::Traffic`].
const SENDERS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const RECEIVER: (Ipv4Addr, u16) = (Ipv4Addr::new(198, 19, 0, 1), 9);
const FIRST_PORT: u16 = 1024;

impl RuleTexts {
    /// So many rules of networks and ranges of ports, no two of them alike, which do not overlap (nft takes no others into a set).
    pub(super) fn ranges(rules: usize, ends: Ends) -> Self {
        let other = |index: usize| {
            let index = u32::try_from(index).expect("few rules");
            let length = u8::try_from(22 + index % 7).expect("up to 28");
            let net = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 0)) + (index << 10));
            let first = u16::try_from(index * 37 % 50_000).expect("a port");
            RuleText {
                net: (net, length),
                ports: (first, first + 1 + u16::try_from(index % 999).expect("few")),
                to: None,
            }
        };
        let mut all: Vec<RuleText> = (0..rules).map(other).collect();
        if ends == Ends::Blocked {
            all.pop();
            all.push(RuleText { net: (SENDERS, 16), ports: (FIRST_PORT, u16::MAX), to: None });
        }
        Self(all)
    }

    /// A rule for each of so many flows of the lab.
    pub(super) fn flows(flows: usize) -> Self {
        let of = |flow: usize| {
            let port = FIRST_PORT + u16::try_from(flow).expect("a port");
            RuleText { net: (SENDERS, 32), ports: (port, port), to: Some(RECEIVER) }
        };
        Self((0..flows).map(of).collect())
    }

    /// Sender and receiver of each, if it is about a flow.
    pub(super) fn ends(&self) -> impl Iterator<Item = ((Ipv4Addr, u16), (Ipv4Addr, u16))> {
        self.0.iter().filter_map(|rule| Some(((rule.net.0, rule.ports.0), rule.to?)))
    }

    /// For `weir guard`.
    pub(super) fn weir(&self) -> String {
        self.lines(|index, RuleText { net: (net, length), ports: (first, last), to }| {
            let to =
                to.map(|(to, port)| format!(" and dst host {to} and dst port {port}")).unwrap_or_default();
            format!(
                "rule-{index}: udp and src net {net}/{length} and src portrange {first}-{last}{to} -> block\n"
            )
        })
    }

    /// For nft: a rule for each.
    pub(super) fn nft_list(&self) -> String {
        let rules = self.lines(|_, RuleText { net: (net, length), ports: (first, last), .. }| {
            format!("ip saddr {net}/{length} udp sport {first}-{last} counter drop\n")
        });
        table("", &rules)
    }

    /// For nft: a set of concatenated ranges, each with a counter.
    pub(super) fn nft_set(&self) -> String {
        let elements = self.lines(|_, RuleText { net: (net, length), ports: (first, last), .. }| {
            format!("{net}/{length} . {first}-{last},\n")
        });
        let set = format!(
            "set s {{ type ipv4_addr . inet_service; flags interval; counter; elements = {{\n{elements}}} }}\n"
        );
        table(&set, "ip saddr . udp sport @s counter drop\n")
    }

    /// For nft: a set of flows, each with a counter and a timeout.
    pub(super) fn nft_timeouts(&self) -> String {
        let elements = self.lines(|_, RuleText { net: (net, _), ports: (first, _), to }| {
            let (to, port) = to.expect("rules of flows");
            format!("{net} . {first} . {to} . {port},\n")
        });
        let set = format!(
            "set s {{ type ipv4_addr . inet_service . ipv4_addr . inet_service; flags timeout; timeout 1h; counter; \
             elements = {{\n{elements}}} }}\n"
        );
        table(&set, "ip saddr . udp sport . ip daddr . udp dport @s counter drop\n")
    }

    fn lines(&self, line: impl Fn(usize, RuleText) -> String) -> String {
        self.0.iter().enumerate().fold(String::new(), |mut text, (index, rule)| {
            let _infallible = text.write_str(&line(index, *rule));
            text
        })
    }
}

/// A table of nft on an interface; what `rules` do not drop is counted at the end.
fn table(set: &str, rules: &str) -> String {
    format!(
        "table netdev weir {{\n{set}chain c {{ type filter hook ingress device \"{DEVICE}\" priority 0; policy accept;\n\
         {rules}counter\n}}\n}}\n"
    )
}

/// Stands for the name of the interface.
pub(super) const DEVICE: &str = "DEVICE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_the_same_in_each_language() {
        let two = RuleTexts::ranges(2, Ends::Blocked);
        let last = |text: &str, skip| text.lines().rev().nth(skip).map(str::to_owned).unwrap_or_default();
        assert_eq!(
            last(&two.weir(), 0),
            "rule-1: udp and src net 198.18.0.0/16 and src portrange 1024-65535 -> block"
        );
        assert_eq!(last(&two.nft_list(), 3), "ip saddr 198.18.0.0/16 udp sport 1024-65535 counter drop");
        assert!(
            two.nft_set().contains("\n10.0.0.0/22 . 0-1,\n198.18.0.0/16 . 1024-65535,\n"),
            "{}",
            two.nft_set()
        );
        let flow = RuleTexts::flows(1);
        assert!(flow.nft_timeouts().contains("\n198.18.0.0 . 1024 . 198.19.0.1 . 9,\n"));
    }
}
