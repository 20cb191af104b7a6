//! What is read, and what is refused, where and with which help.

use std::time::Duration;

use weir_filter::names::Names;
use weir_filter::{Beside, Dialect};

use super::*;
use crate::action::{CaptureAction, Fate, Key, Learn, Log, Over, Shortcut};
use crate::quantity::Rate;

/// A file with all that the language has.
const ALL: &str = "\
# comment
dns:   port 53                                  -> capture
noise: udp port 5353 or ether multicast         -> ignore
bad:   host in @blocklist                       -> capture, block
bulk:  tcp port 443                             -> capture first 20 of each flow
scan:  tcp[tcpflags] == tcp-syn                 -> capture, learn block for 30s if over 100/s by src
rest:                                           -> sample 1/100
";

#[derive(Debug)]
struct Blocklist;

impl Names for Blocklist {
    fn set(&self, _name: &str) -> Result<String, String> {
        Ok("10.0.0.9 2001:db8::/32".to_owned())
    }
}

fn options() -> Options<'static> {
    Options {
        dialect: Dialect::Weir,
        link_type: 1,
        snap_len: 262_144,
        metadata: Beside::Direction,
        swapped: false,
        others: &[],
        netmask: None,
        names: &Blocklist,
    }
}

fn actions(text: &str) -> Actions {
    let rules =
        RuleSet::parse(&format!("ip -> {text}")).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
    rules.rules[0].actions.clone()
}

/// Returns the only mistake, rendered.
fn mistake(text: &str) -> String {
    let errors = RuleSet::parse(text).and_then(|rules| rules.compile(&options()).map(drop));
    let errors = errors.expect_err(text);
    assert_eq!(errors.len(), 1, "{text}: {errors:?}");
    render(&errors[0], "a.rules", text)
}

#[test]
fn the_example_is_read() {
    let set = RuleSet::parse(ALL).expect("rules");
    set.compile(&options()).expect("expressions");
    let names: Vec<_> = set.rules.iter().map(|rule| (rule.name.as_str(), rule.line)).collect();
    assert_eq!(names, [("dns", 2), ("noise", 3), ("bad", 4), ("bulk", 5), ("scan", 6), ("rest", 7)]);
    assert_eq!(set.rules[5].label(), "");
    assert_eq!(set.rules[4].label(), "tcp[tcpflags] == tcp-syn");
}

#[test]
fn no_rule_has_the_name_of_their_sum() {
    let said = mistake("dns: port 53 -> capture\n total: ip -> capture");
    assert!(said.starts_with("a.rules:2:2: a rule cannot be named `total`\n   total: ip"), "{said}");
    RuleSet::parse("Total: tcp -> capture\ntotals: ip -> capture\n").expect("other names");
}

#[test]
fn two_decisions_and_what_else_there_is() {
    let over = |packets, seconds, key| {
        Some(Over { rate: Rate { packets, period: Duration::from_secs(seconds) }, key })
    };
    let usual = Actions::default;
    let (block, capture) = (Fate::Block, CaptureAction::Capture);
    let learn = |shortcut, seconds, both, over| {
        Some(Learn { shortcut, lasting: Duration::from_secs(seconds), idle: false, both, over })
    };
    let table = [
        ("ignore", usual()),
        ("pass", usual()),
        ("capture", Actions { capture, ..usual() }),
        ("block, capture", Actions { capture, fate: block.clone(), ..usual() }),
        ("sample 1/100", Actions { capture: CaptureAction::Sample(100), ..usual() }),
        ("capture  sample 1/1", Actions { capture: CaptureAction::Sample(1), ..usual() }),
        ("first 3 of each flow", Actions { capture: CaptureAction::First(3), ..usual() }),
        (
            "capture first 3 of each flow,block",
            Actions { capture: CaptureAction::First(3), fate: block.clone(), ..usual() },
        ),
        ("reflect eth1", Actions { fate: Fate::Reflect("eth1".into()), ..usual() }),
        (
            "bounce if over 6000/min by flow",
            Actions { fate: Fate::Bounce, fate_over: over(6000, 60, Key::Flow), ..usual() },
        ),
        (
            "continue, log if over 5/h by dst",
            Actions { continues: true, log: Some(Log { over: over(5, 3600, Key::Destination) }), ..usual() },
        ),
        ("log, continue", Actions { continues: true, log: Some(Log { over: None }), ..usual() }),
        (
            "learn block for 2m in both directions if over 1/s by src",
            Actions { learn: learn(Shortcut::Fate(block), 120, true, over(1, 1, Key::Source)), ..usual() },
        ),
        (
            "learn reflect eth1 for 1h",
            Actions {
                learn: learn(Shortcut::Fate(Fate::Reflect("eth1".into())), 3600, false, None),
                ..usual()
            },
        ),
        (
            "learn pass for 1s",
            Actions { learn: learn(Shortcut::Fate(Fate::Pass), 1, false, None), ..usual() },
        ),
        ("learn capture for 1s", Actions { learn: learn(Shortcut::Capture, 1, false, None), ..usual() }),
        ("learn ignore for 1s", Actions { learn: learn(Shortcut::Ignore, 1, false, None), ..usual() }),
        (
            "learn ignore for 1s idle in both directions if over 1/s by src",
            Actions {
                learn: learn(Shortcut::Ignore, 1, true, over(1, 1, Key::Source))
                    .map(|learn| Learn { idle: true, ..learn }),
                ..usual()
            },
        ),
    ];
    for (text, expected) in table {
        let read = actions(text);
        assert_eq!(read, expected, "{text}");
        // What is written is read again as the same.
        assert_eq!(actions(&read.to_string()), expected, "{read}");
    }
}

#[test]
fn a_mistake_has_a_place_and_a_remedy() {
    let rendered = mistake("# one\nbad: ip -> capture, blck\n");
    assert_eq!(
        rendered,
        "a.rules:2:21: unknown action `blck`\n  bad: ip -> capture, blck\n                      ^^^^\ndid you mean `block`?"
    );
    let rendered = mistake("é: ip -> capture\n");
    assert!(rendered.starts_with("a.rules:1:1: unexpected `é`"), "{rendered}");
}

#[test]
fn mistakes() {
    let table = [
        ("ip", "1:3: expected `->` and an action", "-> capture"),
        ("ip ->", "1:4: expected an action after `->`", "-> ignore"),
        ("ip -> capture,", "1:14: expected an action beside the comma", ""),
        ("ip -> ,capture", "1:7: expected an action beside the comma", ""),
        ("ip -> capture,,block", "1:15: expected an action beside the comma", ""),
        ("ip -> drop", "1:7: unknown action `drop`", "weir's word is `block`"),
        ("ip -> whatever", "1:7: unknown action `whatever`", "actions: capture, ignore"),
        ("ip -> pass, block", "1:13: `block` contradicts `pass`", "one of pass, block"),
        ("ip -> capture, ignore", "1:16: `ignore` contradicts `capture`", "one of capture"),
        ("ip -> capture, sample 1/2", "1:16: `sample` contradicts `capture`", "`capture sample`"),
        ("ip -> block, block", "1:14: `block` appears twice", ""),
        ("ip -> continue, block", "1:17: `block` and `continue` contradict", "decides nothing"),
        ("ip -> capture, continue", "1:16: `capture` and `continue` contradict", "decides nothing"),
        ("ip -> log, log", "1:12: `log` appears twice", ""),
        ("ip -> sample", "1:13: expected which part", ""),
        ("ip -> reject", "1:7: unknown action `reject`", "weir's word is `block`"),
        (
            "ip -> learn pass for 1s if over 1/s by src in both directions",
            "1:44: unexpected `in` after `learn`",
            "before `if over`",
        ),
        ("ip -> sample 1/0", "1:14: `1/0` is not a share of packets", "1/100"),
        ("ip -> sample 100", "1:14: `100` is not a share of packets", "1/100"),
        ("ip -> first 0 of each flow", "1:13: `0` is not a number", "from 1"),
        ("ip -> first 3 of every flow", "1:18: expected `each`, not `every`", ""),
        ("ip -> first 3", "1:14: expected `of`", "write `first 3 of each flow`"),
        ("ip -> firstt 3 of each flow", "1:7: unknown action `firstt`", "did you mean `first`?"),
        (
            "ip -> capture firstt 3 of each flow",
            "1:15: unexpected `firstt` after `capture`",
            "did you mean `first`?",
        ),
        ("ip -> reflect", "1:14: expected an interface", ""),
        ("ip -> learn", "1:12: expected `capture`, `ignore`", ""),
        ("ip -> learn blck for 3s", "1:13: expected `capture`", "did you mean `block`?"),
        ("ip -> learn bounce", "1:19: expected `for`", "`learn bounce for 30s`"),
        ("ip -> learn block for 30", "1:23: `30` is not a time", "30s"),
        ("ip -> learn block for 30s in both", "1:34: expected `directions`", ""),
        ("ip -> learn block for 30s in both directions idle", "1:46: unexpected `idle`", "for 30s idle"),
        ("ip -> learn block for idle", "1:23: `idle` is not a time", "for 30s idle"),
        ("ip -> learn block for 30s idlee", "1:27: unexpected `idlee`", "did you mean `idle`?"),
        ("ip -> block if over 100 by src", "1:21: `100` is not a rate", "100/s"),
        ("ip -> block if over 100/s by source", "1:30: expected `src`, `dst` or `flow`, not `source`", ""),
        ("ip -> capture if over 100/s by src", "1:15: unexpected `if` after `capture`", "belongs to block"),
        ("ip -> capture block", "1:15: unexpected `block` after `capture`", "comma"),
        ("ip -> capture -> block", "1:15: unexpected `->`", "one rule per line"),
        ("a: ip -> log\n\na: udp -> log", "3:1: the rule on line 1 is named `a`, too", "of its own"),
        ("line-2: ip -> log\nudp -> log", "2:1: the rule on line 1 is named `line-2`, too", ""),
        // Filters' own, placed in the line.
        ("dns: tcp prot 53 -> capture", "1:10: expected `and`", "did you mean `port`?"),
        ("# x\nip and \\\n  prot 53 -> capture", "3:3: ", "did you mean"),
        ("dns:port 53 -> capture", "1:", "blank behind the colon"),
        (
            "dns port 53 -> capture",
            "1:1: expected a term, not `dns`",
            "; if `dns` is the rule's name, put a colon",
        ),
        (
            "tpc port 80 -> capture",
            "1:1: expected a term, not `tpc`\n  tpc port 80 -> capture\n  ^^^\ndid you mean `tcp`?",
            "",
        ),
        ("9dns: port 53 -> capture", "1:", ""),
        ("ip and -> capture", "1:7: ", ""),
    ];
    for (text, start, help) in table {
        let rendered = mistake(text);
        assert!(rendered.starts_with(&format!("a.rules:{start}")), "{text}\n{rendered}");
        assert!(rendered.contains(help), "{text}\n{rendered}");
    }
}

#[test]
fn each_rule_tells_its_first_mistake() {
    let errors = RuleSet::parse("ip -> blck, blck\nudp\ntcp -> log\n-> nothing").expect_err("mistakes");
    assert_eq!(errors.len(), 3, "{errors:?}");
}

#[test]
fn the_place_of_an_action_is_found() {
    let text = "# log\na: ip -> capture, \\\n  block if over 1/s by src,log # log\nb: udp ->pass\n";
    let set = RuleSet::parse(text).expect("rules");
    let place = |rule: usize, word: &str| {
        let place = set.rules[rule].action_place(text, word);
        (place.start, text[place].to_owned())
    };
    assert_eq!(place(0, "log"), (text.find("log # log\nb").expect("it"), "log".to_owned()));
    assert_eq!(place(0, "if"), (text.find("if over").expect("it"), "if".to_owned()));
    assert_eq!(place(1, "pass"), (text.find("pass").expect("it"), "pass".to_owned()));
    assert_eq!(place(1, "log"), (text.rfind("->").expect("it"), "->".to_owned()));
}

#[test]
fn mistakes_in_expressions_and_elsewhere_are_told_in_the_order_of_the_file() {
    let text =
        "a: udp prot 9 -> block\nb udp -> blck\na: port 70000 -> log\nc: tcp -> block \\\nd: udp -> block\n";
    let mistakes =
        RuleSet::parse_and(text, |set| set.compile_behind_fields(&options())).expect_err("mistakes");
    let places: Vec<_> = mistakes.iter().map(|mistake| position(mistake, text)).collect();
    assert_eq!(places, [(1, 8), (2, 1), (2, 10), (3, 1), (3, 9), (5, 1)], "{mistakes:?}");
    let help = mistakes[5].help.as_deref().expect("help");
    assert_eq!(help, "the `\\` at the end of line 4 joins this line to it");
    let text = "c: tcp \\\n and prot 5 -> block\n";
    let mistakes =
        RuleSet::parse_and(text, |set| set.compile_behind_fields(&options())).expect_err("a mistake");
    assert!(!format!("{mistakes:?}").contains("joins"), "{mistakes:?}");
}
