//! The programs of others: how they are run, and what they say at the end.
//!
//! Each gets 128 MiB for packets, as much as weir's pool of two queues, all of it for the one queue that has traffic; no
//! filter, no name resolution, and whole packets, as is their default.

use super::program::{Counts, Program};

/// libpcap, with the time-out of a second that tcpdump asks for. It keeps its privileges, which it would have to give up
/// before it opens the file.
pub(super) fn tcpdump(output: &'static str) -> Program {
    tcpdump_with("131072", output)
}

/// The same with so many KiB for packets.
pub(super) fn tcpdump_with(kibibytes: &'static str, output: &'static str) -> Program {
    let words = vec!["-i", "{interface}", "-n", "-Z", "root", "-B", kibibytes, "-w", output];
    Program::new(["tcpdump", "tcpdump"], "listening on", 1200, words, |_, stderr| {
        let count = |words: &str| leading(stderr, words);
        let dropped = Some(count("packet dropped by kernel")?);
        Some(Counts { dropped, ..Counts::of(count("packet captured")?) })
    })
}

/// libpcap, with a time-out of 250 ms; writes pcapng.
pub(super) fn dumpcap() -> Program {
    dumpcap_with("128")
}

/// The same with so many MiB for packets.
pub(super) fn dumpcap_with(mebibytes: &'static str) -> Program {
    let words = vec!["-i", "{interface}", "-q", "-B", mebibytes, "-w", "{file}"];
    Program::new(["dumpcap", "wireshark-common"], "File: ", 500, words, |_, stderr| {
        let dropped = stderr.lines().find_map(|line| line.split_once("': "));
        let dropped = dropped.and_then(|(_, numbers)| numbers.split_once('/'));
        let dropped = Some(first_number(dropped?.1)?);
        Some(Counts { dropped, ..Counts::of(following(stderr, "Packets captured: ")?) })
    })
}

/// TPACKET_V3 without libpcap. Settings of the machine are left as they are.
pub(super) fn netsniff_ng() -> Program {
    netsniff_ng_with("128MiB")
}

/// The same with so much for packets.
pub(super) fn netsniff_ng_with(ring: &'static str) -> Program {
    let mut words = vec!["--in", "{interface}", "--out", "/dev/null", "--silent", "--ring-size", ring];
    words.extend(["--no-sock-mem", "--notouch-irq"]);
    Program::new(["netsniff-ng", "netsniff-ng"], "Running!", 300, words, |stdout, _| {
        let dropped = Some(leading(stdout, "packet failed filter (out of space)")?);
        Some(Counts { dropped, ..Counts::of(leading(stdout, "packet incoming")?) })
    })
}

/// The number before these words, at the beginning of a line; `packet` stands for the plural, too.
pub(super) fn leading(text: &str, words: &str) -> Option<u64> {
    text.split(['\n', '\r']).find_map(|line| {
        let (number, rest) = line.trim_start().split_once(' ')?;
        rest.trim_start().replacen("packets", "packet", 1).starts_with(words).then(|| number.parse().ok())?
    })
}

/// The number behind these words.
fn following(text: &str, words: &str) -> Option<u64> {
    first_number(text.split_once(words)?.1)
}

fn first_number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(delivered: u64, dropped: u64) -> Option<Counts> {
        Some(Counts { dropped: Some(dropped), ..Counts::of(delivered) })
    }

    #[test]
    fn last_words_of_tcpdump_4_99() {
        let parse = |text: &str| (tcpdump("/dev/null").parse)("", text);
        let begun = "tcpdump: listening on b0, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n";
        let many = "12345 packets captured\n12399 packets received by filter\n54 packets dropped by kernel\n";
        assert_eq!(parse(&format!("{begun}{many}")), counts(12345, 54));
        let one = "1 packet captured\n1 packet received by filter\n0 packets dropped by kernel\n";
        assert_eq!(parse(&format!("{begun}{one}")), counts(1, 0));
        assert_eq!(parse(begun), None);
    }

    #[test]
    fn last_words_of_dumpcap_4() {
        let parse = |text: &str| (dumpcap().parse)("", text);
        let begun = "Capturing on 'b0'\nFile: /dev/shm/x\n";
        let end = "\rPackets captured: 13\nPackets received/dropped on interface 'b0': 13/7 (pcap:7/dumpcap:0/flushed:0/ps_ifdrop:0) (65.0%)\n";
        assert_eq!(parse(&format!("{begun}{end}")), counts(13, 7));
        assert_eq!(parse(begun), None);
    }

    #[test]
    fn last_words_of_netsniff_ng_0_6() {
        let parse = |text: &str| (netsniff_ng().parse)(text, "");
        let begun = "Running! Hang up with ^C!\n\n";
        let end = "\r           6  packets incoming (4 unread on exit)\n\r           8  packets passed filter\n\r           2  packets failed filter (out of space)\n\r     20.0000% packet droprate\n\r           2  sec, 180916 usec in total\n";
        assert_eq!(parse(&format!("{begun}{end}")), counts(6, 2));
        assert_eq!(parse(begun), None);
    }
}
