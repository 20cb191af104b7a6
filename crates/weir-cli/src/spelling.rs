//! Words that people type who know tcpdump, tshark, dumpcap, tcpreplay or iftop, and what weir calls these things; and words
//! that are almost weir's.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use weir::parts::distance;

use crate::failure::Failure;

/// What is wrong with the command line, if the parser has no better answer. Its own tips that lead nowhere are removed.
pub(crate) fn answer(error: &mut clap::Error, command: Option<&str>) -> Option<Failure> {
    let (kind, table) = match error.kind() {
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, &OPTIONS[..]),
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, &COMMANDS[..]),
        _ => return None,
    };
    let Some(ContextValue::String(unknown)) = error.get(kind) else { return None };
    let unknown = unknown.clone();
    if let Some(ours) = advice(table, &unknown, command.unwrap_or_default()) {
        let what = if kind == ContextKind::InvalidArg { "option" } else { "command" };
        return Some(Failure::usage(format!("there is no {what} {unknown} here")).hint(ours));
    }
    without_odd_tips(error, &unknown);
    None
}

fn advice(table: &[Entry], unknown: &str, command: &str) -> Option<&'static str> {
    let has = |list: &str, word: &str| list.split(' ').any(|other| other == word);
    let fits = |(words, commands, _): &&Entry| {
        has(words, unknown) && (commands.is_empty() || has(commands, command))
    };
    table.iter().find(fits).map(|(.., ours)| *ours)
}

/// Removes tips that name something else than what was meant, and the advice to pass an option as a value.
fn without_odd_tips(error: &mut clap::Error, unknown: &str) {
    error.remove(ContextKind::Suggested);
    for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand] {
        match error.remove(kind) {
            Some(ContextValue::String(tip)) if is_close(unknown, &tip) => {
                error.insert(kind, ContextValue::String(tip));
            }
            Some(ContextValue::Strings(tips)) => {
                let close: Vec<_> = tips.into_iter().filter(|tip| is_close(unknown, tip)).collect();
                if !close.is_empty() {
                    error.insert(kind, ContextValue::Strings(close));
                }
            }
            // It has the option of the tip in it.
            Some(_) => drop(error.remove(ContextKind::Usage)),
            None => {}
        }
    }
}

/// Returns whether one word may be meant by the other: there are few slips, or one is the beginning of the other.
pub(crate) fn is_close(typed: &str, meant: &str) -> bool {
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let plain = |word: &str| word.trim_start_matches('-').to_owned();
    let (typed, meant) = (plain(typed), plain(meant));
    let slips = typed.chars().count() / 3;
    let begins = typed.len().min(meant.len()) > 3 && (typed.starts_with(&meant) || meant.starts_with(&typed));
    // Two letters in the wrong order are one slip.
    let swapped = letters(&typed) == letters(&meant) && distance(&typed, &meant) <= 2;
    begins || swapped || distance(&typed, &meant) <= slips.min(2)
}

/// Returns an answer to the options of `-a` and `-b` in dumpcap and tshark. weir's `-b` takes no value, so that they become a
/// filter.
pub(crate) fn of_words(words: &[String]) -> Option<Failure> {
    let (what, number) = words.first()?.split_once(':')?;
    let is_theirs = ["filesize", "duration", "files", "packets", "interval"].contains(&what);
    let is_number = number.starts_with(|first: char| first.is_ascii_digit());
    (is_theirs && is_number)
        .then(|| Failure::usage(format!("{} is no filter", words[0])).hint(format!("{ROTATION}; {END}")))
}

/// Words, the commands that lack them (none are named: wherever they are lacking), and the advice.
type Entry = (&'static str, &'static str, &'static str);

const ROTATION: &str = "to begin a new file: -C 100MB or -G 1h, to keep only the last 10: -W 10";
const END: &str = "to end: --duration 10s or -c N";

const OPTIONS: [Entry; 66] = [
    // tcprewrite's
    ("--seed", "read replay", "to give all addresses other ones: --anonymise KEY"),
    ("--pnat --srcipmap --dstipmap", "read replay", "to move addresses: --map-ip 10.1.0.0/16=192.168.0.0/16"),
    ("--portmap", "read replay", "to replace ports: --map-port 80=8080"),
    (
        "--enet-dmac --enet-smac --enet-vlan",
        "read replay",
        "for other headers: --dst-mac MAC, --src-mac MAC, --map-mac A=B, --vlan ID",
    ),
    // tcpdump's
    ("-r --read", "capture", "to read a file: weir read FILE"),
    ("-d", "capture read", "to see the compiled filter: weir filter 'EXPRESSION'"),
    (
        "-i --interface -D --list-interfaces",
        "read",
        "to capture: weir capture -i IF; weir capture -D lists interfaces",
    ),
    (
        "-C -G -W",
        "read",
        "to split a file: weir read FILE --split-by time:1h -w NAME (or size:100MB, count:N)",
    ),
    ("-Q", "read", "to select a direction, use a filter: weir read FILE -- inbound (or outbound)"),
    (
        "-j --time-stamp-type",
        "capture read",
        "to select timestamps: weir capture --timestamps kernel, batch or none",
    ),
    (
        "-J --list-time-stamp-types",
        "capture read",
        "weir capture --help lists the timestamps: see --timestamps",
    ),
    (
        "-L --list-data-link-types -y --linktype",
        "capture read",
        "weir captures the interface's own link type; weir devices shows it",
    ),
    ("-I --monitor-mode", "capture read", "set the card to monitor mode first: iw dev IF set type monitor"),
    (
        "--immediate-mode",
        "capture read",
        "not needed: weir prints packets as they arrive; for a file, use -U",
    ),
    ("--time-stamp-precision", "capture read", "to print nanoseconds: --nano"),
    ("-O --no-optimize", "capture read", "to see the filter before optimization: weir filter --help"),
    ("-E -M", "capture read", "weir does not decrypt; write a file with -w and use tshark"),
    ("-m -u", "capture read", "weir has no such format; write a file with -w and print it with tcpdump -r"),
    ("-N", "capture read", "weir prints numbers, or whole names with --names"),
    (
        "-z",
        "read",
        "for tshark's -z follow,tcp,ascii,N: --stream N; for -z conv,ip: weir top -r FILE; tcpdump's -z belongs to weir capture",
    ),
    ("-Z", "read", "weir read runs as you; -Z belongs to weir capture"),
    ("--follow-stream --tcp-stream", "read", "to print the contents of a stream: --stream N"),
    ("-p --no-promiscuous-mode -B", "read", "it belongs to weir capture"),
    ("--lengths", "capture read", "every line ends with the length"),
    ("-w --write", "count stat", "to write packets to a file: weir capture -w FILE"),
    // tshark's and dumpcap's
    (
        "-Y --display-filter -R --read-filter",
        "capture count read replay stat",
        "weir has tcpdump's filters, such as 'port 53'; for display filters: \
         weir capture -w - | tshark -r - -Y FILTER",
    ),
    ("-a --autostop", "capture count stat", END),
    ("-a --autostop", "read", "to end earlier: -c N or --to TIME"),
    ("--ring-buffer", "capture", ROTATION),
    ("-b --ring-buffer", "count stat", "it writes no files; weir capture does"),
    ("-P", "capture", "to write pcap: --format pcap; to print packets, too: --print"),
    ("-P", "read", "to write pcap: --format pcap"),
    ("-o --output --outfile --out", "capture read", "to write to a file: -w FILE"),
    ("--promisc --promiscuous", "capture count stat", "interfaces are promiscuous unless -p is given"),
    ("--details", "read", "to print more: -v, -vv or -vvv"),
    (
        "--export-objects --decode-as",
        "capture read",
        "weir has no dissectors for this; write a file and use tshark",
    ),
    // tcpreplay's
    ("-p --pps", "replay", "to send at a rate: --rate 1000pps"),
    ("-M --mbps", "replay", "to send at a rate: --rate 100Mbps"),
    ("--pps --mbps -p -M", "gen", "to send at a rate: --rate 1000pps or --rate 100Mbps"),
    ("--topspeed", "replay", "as fast as possible: -t or --top-speed"),
    ("--multiplier", "replay", "faster than recorded: -x 2 or --speed 2x"),
    ("--preload-pcap", "replay", "to read the file first: -K or --preload"),
    ("-L --limit", "replay", "to send only some packets: -c N"),
    ("--duration", "replay", "to send a part of the file: --to +10s"),
    ("-I --intf2 --cachefile", "replay", "to send what servers have sent on another interface: --second IF"),
    ("-v --verbose", "replay", "to print the packets: weir read FILE"),
    // iftop's
    ("-n -N", "stat", "addresses and ports are always numbers"),
    ("-P", "stat", "to count by address and port: --by src,dst,port"),
    ("-B", "stat", "to show the keys with the most bytes first: --busiest bytes"),
    ("-N -B -b", "top", "addresses and ports are always numbers; conversations are ranked by bytes"),
    ("-f -F -G --filter", "top", "the filter has no option: weir top -i IF tcp port 443"),
    ("-t", "top", "to print once, as text: --once"),
    ("-s", "top", "to end after a time: --duration 10s"),
    ("-L", "top", "to show more: --top N"),
    ("-t", "stat", "into a pipe or file, weir stat prints lines; --csv and --json are for programs"),
    // other names for weir's
    (
        "--iface --if --ifname --intf --intf1 --dev --device --nic",
        "capture count gen replay stat top",
        "the interface: -i IF",
    ),
    ("--timeout --time --seconds", "capture count gen stat top", "to end after a time: --duration 10s"),
    ("--limit --packets --packet-count --max", "capture count gen read stat", "to end after N packets: -c N"),
    ("--dump", "read", "to print the bytes: -x, with the link-layer header -xx, with text -X"),
    ("--hex --dump", "capture", "to print the bytes: -x, with the link-layer header -xx, with text -X"),
    (
        "--pps --mbps --bps --bandwidth",
        "capture count stat",
        "rates are shown by weir count, by address by weir stat --by src",
    ),
    ("--top --talkers", "capture count", "to see who talks to whom: weir top -i IF"),
    (
        "--proc --prog --program --uid --owner --cgroup",
        "read",
        "to select packets by their owner: --process NAME, --pid N, --user USER, --container NAME",
    ),
    // not there
    (
        "--process --pid --proc --prog --program --user --uid",
        "",
        "weir capture --who shows the processes behind packets; weir read --process NAME selects them, from a file captured with --who",
    ),
    (
        "--ipfix --netflow --sflow --flow",
        "",
        "to export flows: weir flows -i IF --to ipfix://HOST, ipfix+tcp://HOST, netflow9://HOST, netflow5://HOST; as JSON: weir flows -i IF --json",
    ),
    ("--block --drop --deny --reject", "", "to block packets by rules: weir guard"),
];

const COMMANDS: [Entry; 15] = [
    (
        "talkers conv conversations iftop nethogs",
        "",
        "to see who talks to whom: weir top -i IF, weir top -r FILE",
    ),
    (
        "flow netflow ipfix softflowd nprobe argus",
        "",
        "to show flows: weir flows -i IF; to export them: weir flows -i IF --to ipfix://HOST; of a file: weir flows -r FILE",
    ),
    ("status ps show", "", "of running captures: weir ctl status; weir ctl list"),
    ("stop kill end", "", "Ctrl-C (SIGINT) ends a capture; weir ctl list shows the processes"),
    (
        "dump sniff record cap live listen monitor print tcpdump tshark dumpcap",
        "",
        "to print packets: weir capture -i IF; into a file: -w FILE; of a file: weir read FILE",
    ),
    (
        "list ls if ifs interface interfaces iface nics links",
        "",
        "of interfaces: weir devices; of captures: weir ctl list",
    ),
    (
        "follow stream streams tcpflow",
        "",
        "to print the contents of a TCP or UDP stream: weir read FILE --stream N",
    ),
    ("send play tcpreplay", "", "to send the packets of a file: weir replay FILE -i IF"),
    ("generate pktgen trafgen", "", "to send test traffic: weir gen -i IF"),
    (
        "merge split cut slice convert editcap mergecap repair",
        "",
        "weir read FILE... -w OTHER; weir read --help lists the options",
    ),
    (
        "capinfos stats statistics",
        "",
        "of a file: weir info FILE, weir stat -r FILE; of an interface: weir stat -i IF",
    ),
    ("bridge tap mirror", "", "between two interfaces: weir forward"),
    ("check test", "", "whether capturing works here: weir doctor; what a filter does: weir filter"),
    ("set", "", "to change a set of a running capture: weir ctl set"),
    ("block drop deny firewall", "", "to block packets by rules: weir guard"),
];

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    fn refused(words: &[&str]) -> clap::Error {
        let words: Vec<_> = ["weir"].iter().chain(words).collect();
        Cli::try_parse_from(&words).expect_err("refused")
    }

    /// The advice, or what the parser says.
    fn said(line: &str) -> String {
        let words: Vec<_> = line.split(' ').collect();
        let mut error = refused(&words);
        match answer(&mut error, words.first().copied()) {
            Some(failure) => failure.advice().expect("advice").to_owned(),
            None => error.to_string(),
        }
    }

    #[test]
    fn words_of_other_programs_are_answered_with_ours() {
        for (typed, ours) in [
            ("capture -d -i lo", "weir filter"),
            ("read t.pcap -i lo", "weir capture"),
            ("capture -r t.pcap", "weir read"),
            ("capture -Y dns", "tshark -r - -Y"),
            ("capture --iface eth0", "-i IF"),
            ("count --process ssh", "weir capture --who"),
            ("capture --ipfix 1", "weir flows -i IF --to"),
            ("capture --block 1", "weir guard"),
            ("capture --timeout 5", "--duration 10s"),
            ("capture --pps 5", "weir count"),
            ("capture -a duration:5", "--duration 10s"),
            ("replay t.pcap --pps 5", "--rate 1000pps"),
            ("gen --pps 5", "--rate 1000pps"),
            ("stat -B", "--busiest bytes"),
            ("flow", "weir flows -i IF"),
            ("iftop", "weir top -i IF"),
            ("nethogs", "weir top -i IF"),
            ("tcpflow", "--stream N"),
            ("follow", "--stream N"),
            ("read t.pcap -z follow,tcp,ascii,0", "--stream N"),
            ("top -t", "--once"),
            ("status", "weir ctl status"),
        ] {
            assert!(said(typed).contains(ours), "{typed}: {}", said(typed));
        }
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let theirs = of_words(&words("filesize:100 tcp")).expect("an answer");
        assert!(theirs.advice().expect("advice").contains("-C 100MB"));
        assert!(of_words(&words("ip6 host ::1")).is_none());
        assert!(of_words(&[]).is_none());
    }

    #[test]
    fn tips_name_what_may_be_meant_or_are_left_out() {
        for (typed, tip) in [
            ("capture --metrix 9", "--metrics"),
            ("capture --soruce tc", "--source"),
            ("captur -i lo", "'capture'"),
            ("rread t.pcap", "'read'"),
        ] {
            assert!(said(typed).contains("tip: a similar") && said(typed).contains(tip), "{}", said(typed));
        }
        for typed in ["capture --frobnicate 9", "read --fence x", "capture -! x", "frobnicate"] {
            assert!(!said(typed).contains("tip:"), "{}", said(typed));
        }
        assert!(!said("capture --farce=2").contains("as a value"));
    }

    #[test]
    fn slips_are_few() {
        for (typed, meant) in
            [("nua0", "nua1"), ("eht0", "eth0"), ("enp3s0", "enp0s3"), ("--durations", "--duration")]
        {
            assert!(is_close(typed, meant), "{typed} {meant}");
        }
        for (typed, meant) in
            [("lo", "ip"), ("--iface", "--force"), ("--process", "--compress"), ("flow", "forward")]
        {
            assert!(!is_close(typed, meant), "{typed} {meant}");
        }
    }

    #[test]
    fn advice_is_only_for_what_weir_lacks() {
        for (options, commands, _) in OPTIONS {
            for option in options.split(' ') {
                for command in commands.split(' ').filter(|command| !command.is_empty()) {
                    let error = refused(&[command, "file", option, "1"]);
                    assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{command} {option}");
                    assert!(advice(&OPTIONS, option, command).is_some(), "{command} {option}");
                }
            }
        }
        for (words, ..) in COMMANDS {
            for word in words.split(' ') {
                assert_eq!(refused(&[word]).kind(), ErrorKind::InvalidSubcommand, "{word}");
            }
        }
    }

    #[test]
    fn letters_of_tcpreplay_that_are_weirs() {
        for words in ["-t", "-K", "-x 2.5", "-l 10", "-Kt", "--loop=3"] {
            let line = format!("weir replay t.pcap -i lo {words}");
            assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{words}");
        }
    }
}
