//! `-i eth0@0-3`: captures on some receive queues only.

use std::process::Command;

use serde_json::Value;
use weir_lab::{Generator, Network, Traffic, Veth, root_test};

use crate::harness::{Ended, directory, generate, path, run, start, tshark};
use crate::namespaces::inside;

/// Sends 300 frames to queue 0 and 500 longer ones to queue 1.
fn send(network: &Network) {
    for (queue, size, frames) in [(0, 60, 300), (1, 100, 500)] {
        let traffic = Traffic::new(size).expect("a size").between(network.pair());
        let mut generator = Generator::new(network.pair(), &traffic).expect("a generator").cpu(queue);
        generate(&mut generator, network.pair(), frames);
    }
}

/// Returns the number and the captured packets of each queue.
fn queues(ended: &Ended) -> Vec<(Option<u64>, Option<u64>)> {
    let account = ended.account();
    account.closes();
    let queues = account.0["queues"].as_array().expect("an array").iter();
    queues.map(|queue: &Value| (queue["queue"].as_u64(), queue["captured"].as_u64())).collect()
}

#[root_test]
fn root_only_chosen_queues_are_counted_and_captured() {
    let network = Network::new(Veth::default().queues(2)).expect("a private network");
    let holder = inside(&network);
    let elsewhere = format!("{}/rx0@1", holder.id());
    for interface in ["rx0@1", &elsewhere] {
        let running = start(&network, &["count", "-i", interface, "--json", "--per-queue"]);
        running.wait_for("only receive queue 1 of 2");
        send(&network);
        assert_eq!(queues(&running.interrupt().succeeded()), [(Some(1), Some(500))], "{interface}");
    }

    let directory = directory();
    let file = path(&directory, "it.pcapng");
    let running =
        start(&network, &["capture", "-i", "rx0@1-1", "--mode", "exclusive", "-w", &file, "--json"]);
    send(&network);
    assert_eq!(queues(&running.interrupt().succeeded()), [(Some(1), Some(500))]);
    assert_eq!(tshark(file.as_ref(), &["frame.len"]), vec!["100"; 500]);
}

#[root_test]
fn root_an_interface_with_such_a_name_is_itself() {
    let network = Network::new(Veth::default().queues(2)).expect("a private network");
    let ip = |arguments: &str| {
        let status = network.rx().run(|| Command::new("ip").args(arguments.split(' ')).status());
        assert!(status.expect("ip runs").success(), "{arguments}");
    };
    ip("link add rx0@1 type veth peer name other");
    ip("link set rx0@1 up");
    let running = start(&network, &["count", "-i", "rx0@1", "--json"]);
    send(&network);
    let ended = running.interrupt().succeeded();
    let account = ended.account();
    assert_eq!(account.0["interfaces"][0]["name"], "rx0@1", "{}", ended.stderr);
    assert_eq!(account.0["captured"], 0, "{}", ended.stderr);
}

#[root_test]
fn root_queues_that_cannot_be_chosen_are_refused() {
    let network = Network::new(Veth::default().queues(2)).expect("a private network");
    for (args, said) in [
        (&["rx0@2"][..], "cannot capture on queue 2 of `rx0`: it has 2 receive queues; try 0-1 (-i)"),
        (&["rx0@0", "--source", "tc"], "arrived; try the xdp source (-i, --source tc)"),
        (&["any@0"], "try the name of an interface (-i)"),
        (&["rx0@x"], "did you mean `rx0`?"),
    ] {
        let ended = run(&network, &[&["count", "-i"], args].concat());
        assert!(!ended.status.success() && ended.stderr.contains(said), "{args:?}: {}", ended.stderr);
    }
}
