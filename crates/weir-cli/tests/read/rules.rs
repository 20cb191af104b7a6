//! Rule sets: what `weir rules check` says of them.

use std::fs;

use serde_json::Value;

use crate::support::{Place, stderr, stdout, succeeds, weir};

/// Rules with all that the language has.
pub(crate) const RULES: &str = "\
# comment
dns:   port 53                            -> capture
bad:   host in @blocklist                 -> capture, block
bulk:  tcp port 443                       -> capture first 2 of each flow
scan:  tcp[tcpflags] == tcp-syn           -> capture, learn block for 30s if over 1/s by src
       arp                                -> continue, log if over 5/min by dst
late:  udp port 53 and \\
       host 10.0.0.1                      -> reflect eth1
rest:                                     -> sample 1/3
";

#[test]
fn a_rule_set_is_shown_and_what_never_matches_is_told() {
    let place = Place::new();
    let file = place.path("edge.rules");
    fs::write(&file, RULES).expect("a file");
    fs::write(place.path("blocklist"), "10.0.0.9").expect("a file");
    let output = weir(&["rules", "check"], &[&file]);
    assert_eq!(output.status.code(), Some(0));
    let expected = "\
rule    expression                     capture               packet        also
dns     port 53                        capture               pass
bad     host in @blocklist             capture               block
bulk    tcp port 443                   first 2 of each flow  pass
scan    tcp[tcpflags] == tcp-syn       capture               pass          learn block for 30s if over 1/s by src
line-6  arp                            -                     -             continue, log if over 5/min by dst
late    udp port 53 and host 10.0.0.1  ignore                reflect eth1
rest    (every packet)                 sample 1/3            pass
";
    assert_eq!(stdout(&output), expected);
    let said = stderr(&output);
    assert!(said.ends_with("edge.rules:7: `late` matches no whole packet: `dns` decides before\n"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");

    let object: Value =
        serde_json::from_str(&succeeds(&["rules", "check", "--json"], &[&file])).expect("JSON");
    let rules = object["rules"].as_array().expect("rules");
    let late = &rules[5];
    assert_eq!((&late["name"], &late["line"]), (&"late".into(), &7.into()));
    assert_eq!((&late["fate"], &late["because_of"][0]), (&"reflect eth1".into(), &"dns".into()));
    assert_eq!(rules[4]["continue"], true);
    assert_eq!(rules.len(), 7);
}

#[test]
fn mistakes_have_places_and_fail() {
    let place = Place::new();
    let file = place.path("edge.rules");
    fs::write(&file, "dns: port 53 -> capture\nbad: host in @elsewhere -> capture, blok\nudp -> drop\n")
        .expect("a file");
    let output = weir(&["rules", "check"], &[&file]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    let said = stderr(&output);
    for part in [
        "edge.rules:2:37: unknown action `blok`\n",
        "\n  bad: host in @elsewhere -> capture, blok\n                                      ^^^^\ndid you mean `block`?\n",
        "edge.rules:3:8: unknown action `drop`\n  udp -> drop\n         ^^^^\nweir's word is `block`\n",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let output = weir(&["rules", "check", "--json"], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    let object: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!((&object["mistakes"][0]["line"], &object["mistakes"][0]["column"]), (&2.into(), &37.into()));
    assert_eq!(object["mistakes"][1]["help"], "weir's word is `block`");

    // Sets are beside the rules, or elsewhere.
    fs::write(&file, "bad: host in @elsewhere -> block\n").expect("a file");
    let said = stderr(&weir(&["rules", "check"], &[&file]));
    assert!(
        said.contains(":1:14: the set `@elsewhere` cannot be read") && said.contains("--set elsewhere=FILE"),
        "{said}"
    );
    fs::write(place.path("list"), "10.0.0.9").expect("a file");
    let set = format!("elsewhere={}", place.path("list").display());
    succeeds(&["rules", "check", "--set", &set], &[&file]);
    fs::rename(place.path("list"), place.path("elsewhere")).expect("a file");
    succeeds(&["rules", "check"], &[&file]);
    assert_eq!(weir(&["rules", "check", "--set", "a"], &[&file]).status.code(), Some(2));
    assert_eq!(weir(&["rules", "check"], &[&place.path("none")]).status.code(), Some(1));
}
