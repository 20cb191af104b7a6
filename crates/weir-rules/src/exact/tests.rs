use super::*;

#[test]
fn rules_are_written_as_they_are_read() {
    for text in [
        "block tcp 192.0.2.7:4444 > 198.51.100.1:80 for 10m",
        "pass udp [2001:db8::1]:53 > [2001:db8::2]:1053",
        "bounce vlan 5 sctp 192.0.2.7:1 > 192.0.2.8:2 in both directions for 36h",
        "block tcp 192.0.2.7:4444 > 198.51.100.1:80 in both directions for 10m idle",
        "block icmp 192.0.2.7 > 192.0.2.8",
        "block icmp6 2001:db8::1 > 2001:db8::2 in both directions",
        "block proto 89 192.0.2.7 > 192.0.2.8",
        "block gre 192.0.2.7 > 192.0.2.8",
    ] {
        let rule = ExactRule::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(rule.to_string(), text);
        assert_eq!(
            ExactPackets::parse(text),
            Ok(rule.packets),
            "{text}: the action and the time do not matter"
        );
        assert_eq!(ExactPackets::parse(&rule.packets.to_string()), Ok(rule.packets));
    }
}

#[test]
fn the_same_may_be_written_in_several_ways() {
    let same = [
        ("block proto 47 192.0.2.7 > 192.0.2.8", "block gre 192.0.2.7 > 192.0.2.8"),
        ("block ipv6-icmp [::1]:0 > [::2]:0", "block icmp6 ::1 > ::2"),
        ("  block   proto 6  192.0.2.7:1\t> 192.0.2.8:2 ", "block tcp 192.0.2.7:1 > 192.0.2.8:2"),
        (
            "block tcp 192.0.2.7:1 > 192.0.2.8:2 for 60s in both directions",
            "block tcp 192.0.2.7:1 > 192.0.2.8:2 in both directions for 1m",
        ),
        (
            "block tcp 192.0.2.7:1 > 192.0.2.8:2 for 60s idle in both directions",
            "block tcp 192.0.2.7:1 > 192.0.2.8:2 in both directions for 1m idle",
        ),
    ];
    for (one, other) in same {
        assert_eq!(ExactRule::parse(one), ExactRule::parse(other), "{one}");
        ExactRule::parse(one).unwrap_or_else(|error| panic!("{one}: {error}"));
    }
}

#[test]
fn both_directions_are_two_flows() {
    let packets = ExactPackets::parse("tcp 192.0.2.7:1 > 192.0.2.8:2 in both directions").expect("right");
    let flows: Vec<_> = packets.directions().map(|flow| flow.to_string()).collect();
    assert_eq!(flows, ["tcp 192.0.2.7:1 > 192.0.2.8:2", "tcp 192.0.2.8:2 > 192.0.2.7:1"]);
    assert_eq!(ExactPackets { both: false, ..packets }.directions().count(), 1);
}

#[test]
fn mistakes_have_a_place_and_a_remedy() {
    let table = [
        ("", "expected `block`, `pass` or `bounce`", ""),
        ("blck tcp 192.0.2.7:1 > 192.0.2.8:2", "not `blck`", "did you mean `block`?"),
        ("reflect eth1 tcp 192.0.2.7:1 > 192.0.2.8:2", "cannot reflect", "block, pass or bounce"),
        ("block tpc 192.0.2.7:1 > 192.0.2.8:2", "unknown protocol `tpc`", "did you mean `tcp`?"),
        ("block ospf 192.0.2.7 > 192.0.2.8", "unknown protocol `ospf`", "proto 89"),
        ("block proto 256 192.0.2.7 > 192.0.2.8", "`256`", "0 to 255"),
        ("block vlan 4096 tcp 192.0.2.7:1 > 192.0.2.8:2", "`4096`", "0 to 4095"),
        ("block tcp 192.0.2.7 > 192.0.2.8:2", "expected a port", "192.0.2.7:80"),
        ("block tcp 2001:db8::1 > [2001:db8::2]:2", "expected a port", "[2001:db8::1]:80"),
        ("block icmp 192.0.2.7:8 > 192.0.2.8", "unexpected port", "write 192.0.2.7"),
        ("block tcp example.org:1 > 192.0.2.8:2", "`example.org:1` is not an address", "192.0.2.7:80"),
        ("block tcp [fe80::1%2]:1 > [fe80::2]:2", "is not an address", "[2001:db8::1]:80"),
        ("block tcp 192.0.2.7:1 192.0.2.8:2", "expected `>`", "in quotes"),
        ("block tcp 192.0.2.7:1 > [::1]:2", "an IPv4 address and an IPv6 address", "same kind"),
        ("block tcp 192.0.2.7:1 >", "expected where the packets go", ""),
        ("block tcp 192.0.2.7:1 > 192.0.2.8:2 for", "expected a time", ""),
        ("block tcp 192.0.2.7:1 > 192.0.2.8:2 for 10", "`10` is not a time", "10s"),
        ("block tcp 192.0.2.7:1 > 192.0.2.8:2 in both", "expected `directions`", ""),
        ("block tcp 192.0.2.7:1 > 192.0.2.8:2 four 10m", "unexpected `four`", "did you mean `for`?"),
        ("block tcp 192.0.2.7:1 > 192.0.2.8:2 for 1m for 2m", "unexpected `for`", ""),
        ("block tcp 192.0.2.7:1 > 192.0.2.8:2 idle", "unexpected `idle`", "for 10m idle"),
        ("block tcp 192.0.2.7:1 > 192.0.2.8:2 for idle", "`idle` is not a time", "for 10m idle"),
        ("block tcp 192.0.2.7:1 > 192.0.2.8:2 for 1m idlee", "unexpected `idlee`", "did you mean `idle`?"),
    ];
    for (text, message, help) in table {
        let error = ExactRule::parse(text).expect_err(text);
        assert!(error.message.contains(message), "{text}: {error}");
        assert!(error.help.as_deref().unwrap_or_default().contains(help), "{text}: {error}");
        assert!(error.span.end <= text.len() && error.span.start <= error.span.end, "{text}: {error:?}");
    }
}
