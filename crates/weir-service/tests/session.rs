//! A program other than weir, the example `served`, from its start to its end.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use serde_json::Value;
use weir_lab::{Generator, Network, Traffic, Veth, require_root};
use weir_service::control::client::Running;

#[test]
fn another_program_is_confined_answers_and_leaves_nothing() {
    if !require_root("another_program_is_confined_answers_and_leaves_nothing") {
        return;
    }
    let network = Network::new(Veth::default()).expect("a private network");
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("served.sock");
    let test = std::env::current_exe().expect("a test is a program");
    let program = test.ancestors().nth(2).expect("it is in target/*/deps").join("examples/served");
    let mut command = Command::new(program);
    command.arg(&network.pair().rx.name).arg(&socket).arg("100").stdout(Stdio::piped());
    let mut child =
        network.rx().run(|| command.spawn()).expect("it starts; built by: cargo build --examples");
    let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut ready = String::new();
    said.read_line(&mut ready).expect("it speaks");
    assert_eq!(ready, "\n", "the first that it says is that it is ready");

    let running = Running::at(&socket).expect("it listens");
    let about = running.about().expect("it answers");
    assert_eq!((about.process, about.command.as_str()), (child.id(), "served"));
    assert_eq!(about.interfaces, [network.pair().rx.name.as_str()]);
    let account: Value = serde_json::from_str(running.status().expect("it answers").get()).expect("JSON");
    assert_eq!(account["confinement"]["capabilities"], Value::Array(Vec::new()), "{account}");
    assert!(account["confinement"]["user"].is_string(), "{account}");
    assert_eq!(account["seen"], 0, "{account}");

    let traffic = Traffic::new(60).expect("a size").between(network.pair());
    let report = Generator::new(network.pair(), &traffic).and_then(|mut generator| generator.send(150));
    assert_eq!(report.expect("frames").accepted, 150);
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("it speaks");
    assert_eq!(rest, "100 packets, stopped by Count\n");
    assert!(child.wait().expect("it ends").success());
    assert!(!socket.exists(), "its helper removes the socket");
}
