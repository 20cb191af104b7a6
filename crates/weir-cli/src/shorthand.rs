//! What people type who know tcpdump: `weir -i eth0 port 53`, `weir -r FILE`, and letters that weir spells differently. What
//! people type who know tcpreplay.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options of weir itself.
const OWN: [&str; 5] = ["-h", "--help", "-V", "--version", "help"];

/// Letters that are followed by a value, in tcpdump and in `weir capture` and `weir read`.
const WITH_VALUE: &str = "BcCEFGijMQrsTVwWyzZf";

/// Adds the command that was meant if there are only options.
pub(crate) fn with_command(mut words: Vec<OsString>) -> Vec<OsString> {
    let first = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    if first.starts_with('-') && first.len() > 1 && !OWN.contains(&first) {
        let command = if names_a_file(&words[1..]) { "read" } else { "capture" };
        words.insert(1, command.into());
    }
    words
}

/// Returns whether `-r` or `--read` is among these words.
fn names_a_file(words: &[OsString]) -> bool {
    let mut words = words.iter().map(|word| word.to_str().unwrap_or_default());
    while let Some(word) = words.next() {
        if word == "--" {
            return false;
        }
        if word == "--read" || word.starts_with("--read=") {
            return true;
        }
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.starts_with('-')) else {
            continue;
        };
        if let Some(at) = letters.find(|letter| WITH_VALUE.contains(letter)) {
            if letters[at..].starts_with('r') {
                return true;
            }
            if at + 1 == letters.len() {
                // The next word is its value.
                words.next();
            }
        }
    }
    false
}

/// Returns an option of tcpdump's that weir does not know, and how weir spells it.
pub(crate) fn spelling<'a>(error: &'a clap::Error, command: Option<&str>) -> Option<(&'a str, &'static str)> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return None };
    let reads = match command {
        Some("read") => true,
        Some("capture") => false,
        Some("replay") => {
            let advice =
                OF_TCPREPLAY.iter().find(|(letters, _)| letters.split(' ').any(|letter| letter == unknown));
            return advice.map(|(_, ours)| (unknown.as_str(), *ours));
        }
        _ => return None,
    };
    let advice = SPELLINGS.iter().find(|(letters, only, _)| {
        letters.split(' ').any(|letter| letter == unknown) && only.is_none_or(|only| only == reads)
    });
    advice.map(|(.., ours)| (unknown.as_str(), *ours))
}

/// Options of tcpreplay's, and the advice. Its `-i -l -t -x -K` are also weir's.
const OF_TCPREPLAY: [(&str, &str); 9] = [
    ("-p --pps", "to send at a rate: --rate 1000pps"),
    ("-M --mbps", "to send at a rate: --rate 100Mbps"),
    ("--topspeed", "as fast as possible: -t or --top-speed"),
    ("--multiplier", "faster than recorded: -x 2 or --speed 2x"),
    ("--preload-pcap", "to read the file first: -K or --preload"),
    ("-L --limit", "to send only some packets: -c N"),
    ("--duration", "to send a part of the file: --to +10s"),
    ("-I --intf2 --cachefile", "to send what servers have sent on another interface: --second IF"),
    ("-v --verbose", "to print the packets: weir read FILE"),
];

/// Options, whether the advice is for reading only or for capturing only, and the advice.
const SPELLINGS: [(&str, Option<bool>, &str); 18] = [
    ("-r --read", Some(false), "to read a file: weir read FILE"),
    ("-d", None, "to see the compiled filter: weir filter 'EXPRESSION'"),
    (
        "-i --interface -D --list-interfaces",
        Some(true),
        "to capture: weir capture -i IF; weir capture -D lists interfaces",
    ),
    (
        "-C -G -W",
        Some(true),
        "to split a file: weir read FILE --split-by time:1h -w NAME (or size:100MB, count:N)",
    ),
    ("-Q", Some(true), "to select a direction, use a filter: weir read FILE -- inbound (or outbound)"),
    ("-j --time-stamp-type", None, "to select timestamps: weir capture --timestamps kernel, batch or none"),
    ("-J --list-time-stamp-types", None, "weir capture --help lists the timestamps: see --timestamps"),
    (
        "-L --list-data-link-types -y --linktype",
        None,
        "weir captures the interface's own link type; weir devices shows it",
    ),
    ("-I --monitor-mode", None, "set the card to monitor mode first: iw dev IF set type monitor"),
    ("--immediate-mode", None, "not needed: weir prints packets as they arrive; for a file, use -U"),
    ("--time-stamp-precision", None, "to print nanoseconds: --nano"),
    ("-O --no-optimize", None, "to see the filter before optimization: weir filter --help"),
    ("-E -M", None, "weir does not decrypt; write a file with -w and use tshark"),
    ("-m -u", None, "weir has no such format; write a file with -w and print it with tcpdump -r"),
    ("-N", None, "weir prints numbers, or whole names with --names"),
    ("-z -Z", Some(true), "weir read runs as you; -z and -Z belong to weir capture"),
    ("-p --no-promiscuous-mode -B", Some(true), "it belongs to weir capture"),
    ("--lengths", None, "every line ends with the length"),
];

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    fn completed(words: &str) -> String {
        let words = ["weir"].into_iter().chain(words.split_whitespace()).map(OsString::from).collect();
        let words: Vec<_> = with_command(words).iter().map(|word| word.display().to_string()).collect();
        words[1..].join(" ")
    }

    #[test]
    fn options_alone_mean_capture_or_read() {
        for (typed, meant) in [
            ("-i eth0 -n port 53", "capture -i eth0 -n port 53"),
            ("-ni eth0", "capture -ni eth0"),
            ("-nnvvXSs0 -i any", "capture -nnvvXSs0 -i any"),
            ("-D", "capture -D"),
            ("-r t.pcap port 53", "read -r t.pcap port 53"),
            ("-nnr t.pcap", "read -nnr t.pcap"),
            ("-c 5 -rt.pcap", "read -c 5 -rt.pcap"),
            ("-n --read=t.pcap", "read -n --read=t.pcap"),
            ("-w -r -i lo", "capture -w -r -i lo"),
            ("-i lo -- -r", "capture -i lo -- -r"),
            ("-ir", "capture -ir"),
            ("read t.pcap", "read t.pcap"),
            ("--help", "--help"),
            ("-h", "-h"),
            ("-V", "-V"),
            ("", ""),
        ] {
            assert_eq!(completed(typed), meant);
        }
    }

    #[test]
    fn a_conversion_may_ask_for_flushing() {
        for words in [["weir", "read", "-Ur", "a", "-w", "b"], ["weir", "read", "-nUUr", "a", "-w", "b"]] {
            assert!(Cli::try_parse_from(words).is_ok(), "{words:?}");
        }
    }

    #[test]
    fn letters_that_weir_lacks_have_advice() {
        let advice = |words: &[&str]| {
            let words: Vec<_> = ["weir"].iter().chain(words).collect();
            let error = Cli::try_parse_from(&words).expect_err("refused");
            spelling(&error, Some(words[1])).map(|(_, ours)| ours)
        };
        assert!(advice(&["capture", "-d", "-i", "lo"]).expect("advice").contains("weir filter"));
        assert!(advice(&["read", "t.pcap", "-i", "lo"]).expect("advice").contains("weir capture"));
        assert!(advice(&["capture", "-r", "t.pcap"]).expect("advice").contains("weir read"));
        assert_eq!(advice(&["capture", "--no-such"]), None);
    }

    #[test]
    fn letters_of_tcpreplay_are_known_or_have_advice() {
        let parse = |option: &str| Cli::try_parse_from(["weir", "replay", "t.pcap", "-i", "lo", option, "1"]);
        for option in OF_TCPREPLAY.iter().flat_map(|(options, _)| options.split(' ')) {
            let error = parse(option).expect_err(option);
            assert!(spelling(&error, Some("replay")).is_some(), "{option}");
        }
        for words in ["-t", "-K", "-x 2.5", "-l 10", "-Kt", "--loop=3"] {
            let line = format!("weir replay t.pcap -i lo {words}");
            assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{words}");
        }
    }

    #[test]
    fn advice_is_only_for_what_weir_lacks() {
        for (options, only, _) in SPELLINGS {
            for option in options.split(' ') {
                for command in ["capture", "read"] {
                    if only.is_some_and(|only| only != (command == "read")) {
                        continue;
                    }
                    let words = ["weir", command, "file", option, "1"];
                    let error = Cli::try_parse_from(words).expect_err(option);
                    assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{command} {option}");
                }
            }
        }
    }
}
