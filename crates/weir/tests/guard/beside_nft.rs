//! nft's counters beside those of the same rules.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{io, iter, thread};

use weir::guard::{Fate, Rules};
use weir::{Filter, SourceChoice};
use weir_lab::{FrameSender, NetNs, root_test};

use super::{guard, network};

const RULES: usize = 20;
const FRAMES: usize = 3000;
const PATIENCE: Duration = Duration::from_secs(30);

/// Numbers without order, always the same ones.
struct Numbers(u32);

impl Numbers {
    fn below(&mut self, limit: u32) -> u32 {
        // The upper bits of a linear congruential generator (Numerical Recipes).
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) % limit
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(u32::try_from(of.len()).expect("few")) as usize]
    }
}

/// What a rule is about, in both languages.
struct Both {
    weir: String,
    nft: String,
}

/// A rule of some terms, about addresses and ports that frames have.
fn rule(numbers: &mut Numbers) -> Both {
    let is_ipv6 = numbers.below(4) == 0;
    let (own, bits) = if is_ipv6 { ("ip6", 128) } else { ("ip", 32) };
    let (mut weir, mut nft) = (vec![own.to_owned()], vec![format!("meta protocol {own}")]);
    for (end, theirs) in [("src", "saddr"), ("dst", "daddr")] {
        if numbers.below(2) == 0 {
            let (address, length) = (address(numbers, is_ipv6), bits - numbers.pick(&[0, 1, 2, 3, 8]));
            // nft and weir take no bits behind the prefix.
            let prefix = cut(&address, length);
            weir.push(format!("{end} net {prefix}/{length}"));
            nft.push(format!("{own} {theirs} {prefix}/{length}"));
        }
    }
    let protocol = numbers.pick(&["tcp", "udp", "icmp", ""]);
    match (protocol, is_ipv6) {
        ("tcp" | "udp", _) => {
            weir.push(protocol.to_owned());
            nft.push(format!("meta l4proto {protocol}"));
            for (end, theirs) in [("src", "sport"), ("dst", "dport")] {
                if numbers.below(2) == 0 {
                    let (first, more) = (numbers.below(20), numbers.below(12));
                    weir.push(format!("{end} portrange {first}-{}", first + more));
                    nft.push(format!("{protocol} {theirs} {first}-{}", first + more));
                }
            }
        }
        ("icmp", false) => {
            weir.push("icmp".to_owned());
            nft.push("meta l4proto icmp".to_owned());
        }
        _ => {}
    }
    Both { weir: weir.join(" and "), nft: nft.join(" ") }
}

/// One of a few addresses.
fn address(numbers: &mut Numbers, is_ipv6: bool) -> Vec<u8> {
    let last = u8::try_from(numbers.below(8)).expect("small");
    match is_ipv6 {
        true => [&[0xfd, 1, 0, 0, 0, 0, 0, 0][..], &[0, 0, 0, 0, 0, 0, 0, last]].concat(),
        false => vec![10, numbers.pick(&[0, 1]), 7, last],
    }
}

/// The first bits of an address, as text.
fn cut(address: &[u8], length: u32) -> String {
    let mut bytes = address.to_vec();
    for (at, byte) in bytes.iter_mut().enumerate() {
        let kept = length.saturating_sub(u32::try_from(at).expect("few") * 8).min(8);
        *byte &= u8::try_from(0xff00_u32 >> kept & 0xff).expect("a byte");
    }
    match <[u8; 16]>::try_from(&bytes[..]) {
        Ok(bytes) => std::net::Ipv6Addr::from(bytes).to_string(),
        Err(_) => bytes.iter().map(u8::to_string).collect::<Vec<_>>().join("."),
    }
}

/// A frame of IP, some with options, and some fragments.
fn frame(numbers: &mut Numbers) -> Vec<u8> {
    let is_ipv6 = numbers.below(4) == 0;
    let protocol: u8 = numbers.pick(&[6, 17, 17, 1, 132]);
    let [source, destination] = [(); 2].map(|()| address(numbers, is_ipv6));
    let mut payload = vec![0; 30];
    (payload[1], payload[3], payload[12]) = (
        u8::try_from(numbers.below(30)).expect("a port"),
        u8::try_from(numbers.below(30)).expect("a port"),
        0x50,
    );
    let mut frame = vec![0x02, 0x77, 0, 0, 0, 2, 0x02, 0x77, 0, 0, 0, 1];
    if is_ipv6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 30, protocol, 64]);
        frame.extend([source, destination, payload].concat());
        return frame;
    }
    let options = numbers.pick(&[0, 0, 0, 4, 40]);
    // The first of several fragments, or a later one. What that begins with nft takes for ports: let it be those of no rule.
    let fragment: [u8; 2] = numbers.pick(&[[0, 0], [0, 0], [0, 0], [0x20, 0], [0, 7]]);
    if fragment[1] > 0 {
        payload[..4].fill(0xff);
    }
    let length = u8::try_from(50 + options).expect("short");
    frame.extend([8, 0, 0x45 + u8::try_from(options / 4).expect("few"), 0, 0, length, 0, 0]);
    frame.extend(fragment);
    frame.extend([64, protocol, 0, 0]);
    let options = vec![1; options];
    frame.extend([source, destination, options, payload].concat());
    frame
}

/// Runs nft with this on its standard input; `None`: there is none here.
fn nft(netns: &NetNs, arguments: &[&str], input: &str) -> Option<String> {
    netns.run(|| {
        let mut command = Command::new("nft");
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                weir_skip::this_test("no nft here");
                return None;
            }
            child => child.expect("nft runs"),
        };
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("nft reads");
        let output = child.wait_with_output().expect("nft ends");
        assert!(output.status.success(), "{}: {input}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    })
}

/// The packets of each of nft's rules, then of none.
fn their_counts(netns: &NetNs) -> Vec<u64> {
    let listed = nft(netns, &["-j", "list", "chain", "netdev", "beside", "c"], "").expect("nft is there");
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let objects = listed["nftables"].as_array().expect("objects").iter();
    let expressions = objects.filter_map(|object| object["rule"]["expr"].as_array()).flatten();
    expressions.filter_map(|one| one["counter"]["packets"].as_u64()).collect()
}

#[root_test]
fn root_each_rule_counts_as_many_packets_as_the_same_one_of_nft() {
    let network = network(1);
    let device = &network.pair().rx.name;
    let mut numbers = Numbers(5);
    // One about a version alone would leave nothing to those behind it.
    let all = iter::repeat_with(|| rule(&mut numbers)).filter(|rule| rule.weir.contains(" and "));
    let rules: Vec<Both> = all.take(RULES).collect();
    let frames: Vec<Vec<u8>> = iter::repeat_with(|| frame(&mut numbers)).take(FRAMES).collect();
    let mut table = format!(
        "table netdev beside {{ chain c {{ type filter hook ingress device \"{device}\" priority 0; policy accept;\n"
    );
    for rule in &rules {
        writeln!(table, "{} counter accept", rule.nft).expect("text");
    }
    table += "counter\n}\n}\n";
    let ours = rules.iter().enumerate().fold(Rules::new(), |all, (number, rule)| {
        all.rule(format!("rule-{number}"), Filter::new(&rule.weir), Fate::Block)
    });
    for source in [SourceChoice::Xdp, SourceChoice::Tc] {
        let mut guard = guard(&network, source, ours.clone(), |builder| builder.dry_run(true));
        if nft(network.rx(), &["-f", "-"], &table).is_none() {
            return;
        }
        let sender = FrameSender::new(&network.pair().tx).expect("a sender");
        frames.iter().for_each(|frame| sender.send(frame).expect("it is sent"));
        let began = Instant::now();
        while their_counts(network.rx()).iter().sum::<u64>() < FRAMES as u64 {
            assert!(began.elapsed() < PATIENCE, "packets are missing: {:?}", their_counts(network.rx()));
            thread::sleep(Duration::from_millis(5));
        }
        guard.stop().expect("it ends");
        let reading = guard.read().expect("counters");
        let counted = reading.rules.iter().map(|rule| rule.count.packets).chain([reading.no_rule.packets]);
        let (ours, theirs) = (counted.collect::<Vec<u64>>(), their_counts(network.rx()));
        if let Some(number) = (0..ours.len()).find(|&number| ours.get(number) != theirs.get(number)) {
            let rule = rules.get(number).map_or("none", |rule| &rule.weir);
            panic!("{source:?}: `{rule}`, number {number} of {ours:?} and {theirs:?}");
        }
        assert_eq!(ours.len(), theirs.len());
        assert!(ours.iter().filter(|count| **count > 0).count() > RULES / 2, "{ours:?}");
        nft(network.rx(), &["delete", "table", "netdev", "beside"], "");
    }
}
