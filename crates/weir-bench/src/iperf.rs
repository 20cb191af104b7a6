//! iperf3 between the two ends of a network.

use std::fmt::Display;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_lab::Port;

use crate::failure::{Failure, failed};
use crate::program::installed;

/// How long it may take beyond the time that it sends.
const PATIENCE: Duration = Duration::from_secs(10);

/// What both ends say.
#[derive(Debug)]
pub(crate) struct Reports {
    pub(crate) client: Value,
    pub(crate) server: Value,
}

/// Runs it once, with these words for the client. Both tell rates for every `interval` seconds.
pub(crate) fn run(server: &Port, client: &Port, interval: &str, words: &[&str]) -> Result<Reports, Failure> {
    let program = installed("iperf3", "iperf3")?;
    let address = server.ipv4.expect("the pair has addresses").to_string();
    let both = ["-J", "-i", interval];
    let mut serving = Command::new(&program);
    serving.args(["-s", "-1", "-B", &address]).args(both);
    let serving = Serving(Some(quiet(&mut serving, |command| server.netns.spawn(command))?));
    let start = Instant::now();
    loop {
        let mut sending = Command::new(&program);
        sending.args(["-c", &address]).args(both).args(words);
        let sending = quiet(&mut sending, |command| client.netns.spawn(command))?;
        let client = report(sending)?;
        if client.pointer("/end/sum_received").is_some() {
            return Ok(Reports { client, server: serving.end()? });
        }
        // The server may not listen yet.
        if start.elapsed() > PATIENCE {
            let error = client["error"].as_str().unwrap_or("no result");
            return Err(Failure::new(format_args!("cannot measure TCP with iperf3: {error}")));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn quiet<E: Display>(
    command: &mut Command,
    spawn: impl FnOnce(&mut Command) -> Result<Child, E>,
) -> Result<Child, Failure> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    spawn(command).map_err(failed("start iperf3"))
}

fn report(child: Child) -> Result<Value, Failure> {
    let output = child.wait_with_output().map_err(failed("run iperf3"))?;
    serde_json::from_slice(&output.stdout).map_err(failed("read iperf3's report"))
}

/// A server that does not outlive this.
struct Serving(Option<Child>);

impl Serving {
    /// It has served once, and ends.
    fn end(mut self) -> Result<Value, Failure> {
        report(self.0.take().expect("it ends once"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // Fails where it has ended already.
            let _ended = child.kill().and_then(|()| child.wait());
        }
    }
}
