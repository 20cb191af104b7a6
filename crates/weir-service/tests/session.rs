//! A program other than weir, the example `served`, from its start to its end.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use weir::filter_control::FilterControl;
use weir_lab::{Generator, Network, Traffic, Veth, root_test};
use weir_service::control::client::Running;
use weir_service::control::{Account, Change};
use weir_service::session::{Engine, Identity, Policy, Prepared, Settings};
use weir_service::{Error, Stop};

#[root_test]
fn another_program_is_confined_answers_and_leaves_nothing() {
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

/// An engine without packets, and an account without a summary.
#[derive(Debug)]
struct Nothing;

impl Engine for Nothing {
    fn filter_control(&self) -> FilterControl {
        panic!("nobody can change its filters")
    }
}

impl Account for Nothing {
    fn interfaces(&self) -> Vec<String> {
        Vec::new()
    }

    fn filter(&self) -> Option<String> {
        None
    }

    fn file(&self) -> Option<String> {
        None
    }

    fn json(&self) -> serde_json::Result<Box<RawValue>> {
        to_raw_value(&())
    }
}

impl Policy for Nothing {
    type Summary = Self;
    type Error = Error;

    fn summary(&mut self) -> Result<Self, Error> {
        Ok(Self)
    }

    fn report(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn changed(&mut self, _: Vec<Change>) -> Result<(), Error> {
        Ok(())
    }

    fn tick(&mut self, _: Instant) -> Result<Option<Stop>, Error> {
        Ok(None)
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn receive(&mut self, _: Duration) -> Result<(), Error> {
        Ok(())
    }

    fn finish(self, _: Result<Stop, Error>, _: impl FnOnce() -> Vec<Change>) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn metrics_of_an_account_without_a_summary_are_refused() {
    let settings = Settings {
        command: "nothing",
        packets: None,
        duration: None,
        confine: false,
        identity: Identity::Kept,
        ready: None,
        metrics: Some("127.0.0.1:0".parse().expect("an address")),
        control: None,
        names: false,
        reloads: false,
        warn: |_| {},
    };
    let prepared = Prepared::new(settings, None).expect("prepared");
    let (engine, opened) = prepared.open(|_| Ok::<_, Error>(Nothing)).expect("open");
    let error = opened.serve(engine).expect_err("no metrics");
    assert!(matches!(error, Error::NoMetrics("nothing")), "{error}");
}
