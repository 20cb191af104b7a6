//! The command line as it was typed, corrected: to be shown to the user, who can copy it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use weir::parts::command;

/// Returns the command in which the words from `words[from]` on follow `--`. The `words` were given in this order, with
/// options anywhere between them.
pub(crate) fn with_filter_after(words: &[PathBuf], from: usize) -> String {
    shown(&moved_to_the_end(env::args_os().collect(), words, from))
}

/// Returns the command in which `old` is these `new` words.
pub(crate) fn with_words(old: &str, new: &[&str]) -> String {
    let words = env::args_os().flat_map(|word| match word == old {
        true => new.iter().map(OsString::from).collect(),
        false => vec![word],
    });
    shown(&words.collect::<Vec<_>>())
}

fn moved_to_the_end(typed: Vec<OsString>, words: &[PathBuf], from: usize) -> Vec<OsString> {
    let mut found = 0;
    let (mut stay, mut moved) = (Vec::new(), vec![OsString::from("--")]);
    for word in typed {
        let is_next = words.get(found).is_some_and(|next| next.as_os_str() == word);
        let list = if is_next && found >= from { &mut moved } else { &mut stay };
        found += usize::from(is_next);
        list.push(word);
    }
    stay.append(&mut moved);
    stay
}

fn shown(words: &[OsString]) -> String {
    let word = |word: &OsString| command::word(&word.to_string_lossy());
    let rest: Vec<String> = words.iter().skip(1).map(word).collect();
    // Where the program is was typed, too.
    let program = words.first().map(OsString::as_os_str).unwrap_or_else(|| OsStr::new("weir"));
    format!("{} {}", command::word(&program.to_string_lossy()), rest.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_without_dashes_moves_behind_them() {
        let table = [
            ("weir read a.pcap port 53", "a.pcap port 53", 1, "weir read a.pcap -- port 53"),
            ("weir read a.pcap port 53 -c 53", "a.pcap port 53", 1, "weir read a.pcap -c 53 -- port 53"),
            ("weir read -c 5 a b not (udp)", "a b not (udp)", 2, "weir read -c 5 a b -- not '(udp)'"),
        ];
        for (typed, words, from, expected) in table {
            let typed = typed.split(' ').map(OsString::from).collect();
            let words: Vec<PathBuf> = words.split(' ').map(PathBuf::from).collect();
            assert_eq!(shown(&moved_to_the_end(typed, &words, from)), expected);
        }
    }
}
