//! `--sample`: what is selected, counted, and said about it.

use std::process::Command;

use weir_lab::{Generator, Network, Traffic, Veth, root_test};

use crate::harness::{directory, generate, path, run, start, tshark};

fn send(network: &Network, frames: u64) {
    let traffic = Traffic::new(60).expect("a size").flows(10).expect("flows").between(network.pair());
    generate(&mut Generator::new(network.pair(), &traffic).expect("a generator"), network.pair(), frames);
}

#[root_test]
fn root_a_sample_is_counted_and_the_file_says_so() {
    const WORDS: &str = "sample 1/10: one in 10 packets of each queue";
    let network = Network::new(Veth::default()).expect("a private network");
    let directory = directory();
    for source in ["xdp", "tc", "af_packet"] {
        let file = path(&directory, &format!("{source}.pcapng"));
        let arguments =
            ["capture", "-i", "rx0", "--source", source, "--sample", "1/10", "-w", &file, "--json"];
        let running = start(&network, &arguments);
        running.wait_for(&format!("rx0: {WORDS}"));
        send(&network, 1000);
        let ended = running.interrupt().succeeded();
        ended.says("1000 packets received by filter");
        let account = ended.account();
        account.closes();
        let numbers = ["seen", "sampled_out", "captured", "written"].map(|field| account.number(field));
        assert_eq!(numbers, [1000, 900, 100, 100], "{}", account.0);
        assert_eq!(account.0["interfaces"][0]["sample"], "1/10", "{}", account.0);

        // The numbers of the frames: six bytes of the signature in the payload of UDP.
        let payloads = tshark(file.as_ref(), &["udp.payload"]);
        let number = |payload: &String| u64::from_str_radix(&payload[8..20], 16).expect("hexadecimal");
        let numbers: Vec<u64> = payloads.iter().map(number).collect();
        assert_eq!(numbers, (0..1000).step_by(10).collect::<Vec<_>>());
        let capinfos = Command::new("capinfos").arg(&file).output().expect("capinfos runs");
        let text = String::from_utf8_lossy(&capinfos.stdout).into_owned();
        assert!(text.contains(WORDS), "{text}");
        let info = run(&network, &["info", &file]).succeeded();
        let text = String::from_utf8_lossy(&info.stdout).into_owned();
        assert!(text.contains(&format!("comment: {WORDS}")) && !text.contains("was killed"), "{text}");
    }
}

#[root_test]
fn root_the_summary_and_weir_count_tell_what_was_sampled_out() {
    let network = Network::new(Veth::default()).expect("a private network");
    let running = start(&network, &["count", "-i", "rx0", "--source", "xdp", "--sample", "1/4"]);
    running.wait_for("rx0: sample 1/4");
    send(&network, 1000);
    let ended = running.interrupt().succeeded();
    let row: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("rx0 ")).collect();
    let head = ended.stderr.lines().find(|line| line.starts_with("interface ")).expect("a head");
    assert!(head.contains("sampled out"), "{}", ended.stderr);
    assert!(
        row.iter().any(|row| row.contains("1,000") && row.contains("750") && row.contains("250")),
        "{row:?}"
    );

    let running = start(&network, &["count", "-i", "rx0", "--sample", "flow:1/2", "--json"]);
    running.wait_for("rx0: sample flow:1/2: the packets of one in 2 flows");
    send(&network, 1000);
    let account = running.interrupt().succeeded().account();
    account.closes();
    assert_eq!(account.number("seen"), 1000);
    assert_eq!(account.number("captured") % 100, 0, "{}", account.0);
}
