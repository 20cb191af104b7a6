//! `weir count` on real interfaces.

use std::io::{BufRead, BufReader};

use serde_json::Value;
use weir_lab::{FrameSender, Generator, Network, Traffic, Veth, root_test};

use crate::harness::{Running, generate, network, run, send, send_off, start, start_piped};

fn count(network: &Network, args: &[&str]) -> Running {
    start(network, &[&["count", "-i", "rx0"], args].concat())
}

/// Sends frames by the interface that is captured.
fn leave(network: &Network, frames: u64) {
    let traffic = Traffic::new(60).expect("size").between(network.pair());
    let send = || FrameSender::new(&network.pair().rx)?.send_frames(&traffic.frames(0..frames));
    network.rx().run(send).expect("frames");
}

#[root_test]
fn root_intervals_add_up_to_the_account() {
    let network = network();
    let running = count(&network, &["--json", "--interval", "100ms"]);
    for intervals in 1..=5 {
        // What nobody has called a mirror port shows both directions.
        if intervals == 3 {
            leave(&network, 1000)
        } else {
            send(&network, 1000)
        }
        running.wait_for_lines(intervals);
    }
    let ended = running.interrupt().succeeded();
    let lines = String::from_utf8_lossy(&ended.stdout).into_owned();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (account, intervals) = lines.split_last().expect("lines");
    assert!(intervals.len() >= 5, "{}", intervals.len());
    assert_eq!(account["type"], "account");
    assert!(intervals.iter().all(|line| line["type"] == "interval"));
    let sum = |field: &str| intervals.iter().map(|line| line[field].as_u64().expect("a number")).sum::<u64>();
    assert_eq!((sum("packets"), sum("bytes"), sum("lost")), (5000, 5000 * 60, 0));
    ended.account().closes();
    assert_eq!((&account["captured"], &account["interfaces"][0]["sent_unseen"]), (&5000.into(), &0.into()));
    ended.says("5000 packets captured");
}

#[root_test]
fn root_a_table_for_people() {
    let network = Network::new(Veth::default().queues(2)).expect("a private network");
    let running = count(&network, &["--source", "xdp", "--per-queue", "-c", "1000", "--active"]);
    leave(&network, 7);
    send_off(&network, 1500);
    let ended = running.wait().succeeded();
    let told = "sent: 7 packets that the host sent, according to the driver, are not among them";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(text.contains("packets/s") && text.contains("bit/s") && text.contains("lost"), "{text}");
    assert!(text.contains("rx0:0") && text.contains("rx0:1"), "{text}");
    ended.says("1000 packets captured");
}

#[root_test]
fn root_a_reader_that_has_seen_enough_is_no_failure() {
    let network = network();
    let (running, stdout) = start_piped(&network, &["count", "-i", "rx0", "--interval", "20ms"]);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    running.wait().succeeded().says("0 packets captured");
}

#[root_test]
fn root_handlers_share_the_work_and_tell_who_did_what() {
    let network = Network::new(Veth::default().queues(2)).expect("a private network");
    let shared = ["--source", "xdp", "--handlers", "2", "--advanced", "--threshold", "60%", "--json"];
    let running = count(&network, &[&shared[..], &["--load", "5", "--load-filter", "udp"]].concat());
    send(&network, 3000);
    let ended = running.interrupt().succeeded();
    let account = ended.account();
    account.closes();
    let handlers = account.0["handlers"].as_array().expect("a list").clone();
    let packets = handlers.iter().map(|handler| handler["packets"].as_u64().expect("a number"));
    assert_eq!((handlers.len(), packets.sum::<u64>()), (2, 3000), "{handlers:?}");
    assert!(handlers.iter().all(|handler| handler["state"] == "ended"), "{handlers:?}");
    assert_eq!(account.0["load"], serde_json::json!({ "times": 5, "matched": 3000 }));
    assert!(ended.stderr.contains("handler 1: "), "{}", ended.stderr);

    // Pinned, in basic mode, and no more than asked for.
    let running = count(&network, &["--source", "xdp", "--handlers", "2", "--pin", "0,0", "-c", "1000"]);
    send_off(&network, 1500);
    let ended = running.wait().succeeded();
    ended.says("1000 packets captured");
    assert!(ended.stderr.contains("handler 1 on CPU 0: "), "{}", ended.stderr);
}

#[root_test]
fn root_flows_of_one_queue_are_steered_to_handlers() {
    let network = network();
    let traffic = Traffic::new(60).expect("size").flows(100).expect("flows").between(network.pair());
    for source in ["xdp", "tc"] {
        let args = ["--source", source, "--handlers", "2", "--steer", "flow", "--targets", "4", "--json"];
        let running = count(&network, &args);
        running.wait_for("steered by flow to 4 targets");
        let mut generator = Generator::new(network.pair(), &traffic).expect("a generator");
        generate(&mut generator, network.pair(), 2000);
        let ended = running.interrupt().succeeded();
        let account = ended.account();
        account.closes();
        let list = |name: &str| account.0[name].as_array().expect("a list").clone();
        let captured = |some: &[Value]| -> Vec<u64> {
            some.iter().map(|one| one["captured"].as_u64().expect("a number")).collect()
        };
        let targets = captured(&list("targets"));
        assert_eq!((targets.len(), targets.iter().sum::<u64>()), (4, 2000), "{targets:?}");
        assert!(targets.iter().all(|&packets| packets > 0), "{targets:?}");
        for (target, &packets) in targets.iter().enumerate() {
            let queues: Vec<_> =
                list("queues").into_iter().filter(|queue| queue["target"] == target).collect();
            assert_eq!(captured(&queues).iter().sum::<u64>(), packets, "{queues:?}");
        }
        let handlers = list("handlers");
        assert_eq!(handlers[1]["packets"], targets[1] + targets[3], "{handlers:?}");
        assert!(ended.stderr.contains("target 3: "), "{}", ended.stderr);
    }
}

#[root_test]
fn root_plans_that_do_not_fit_are_refused() {
    let network = Network::new(Veth::default().queues(2)).expect("a private network");
    let table: [(&[&str], &str); 7] = [
        (&["--handlers", "3"], "some would be idle"),
        (&["--handlers", "2", "--pin", "0,4095"], "no CPU 4095"),
        (&["--handlers", "2", "--pin", "0"], "as many CPUs as handlers"),
        (&["--handlers", "2", "--advanced", "--group", "0-2"], "no queue 2"),
        (&["--handlers", "2", "--advanced", "--group", "0-1", "--group", "1"], "two groups"),
        (&["--handlers", "2", "--steer", "flow", "--targets", "3"], "3 targets for 2 handlers"),
        (&["--handlers", "300", "--steer", "vlan"], "1 to 256"),
    ];
    for (args, said) in table {
        let ended = run(&network, &[&["count", "-i", "rx0", "--source", "xdp"], args].concat());
        assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
}
