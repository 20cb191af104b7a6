//! The command that people leave out who know tcpdump: `weir -i eth0 port 53`, `weir -r FILE`.

use std::ffi::OsString;

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
}
