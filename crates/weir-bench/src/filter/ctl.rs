//! What `weir ctl filter` takes as a process, beside a capture that is a process, too.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use weir_lab::Network;

use crate::failed;
use crate::failure::Failure;
use crate::program::{WEIR, find};
use crate::spread::Spread;
use crate::style;
use crate::tidy;

/// How long a capture may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// One call. Times in microseconds.
#[derive(Debug, Serialize)]
pub(super) struct Ctl {
    source: &'static str,
    /// Until the filter was compiled and loaded.
    made: f64,
    /// In the capture, to put it in place.
    in_force: f64,
    /// From the start of the process to its end.
    pub(super) process: f64,
}

/// What it says of itself (`--json`).
#[derive(Deserialize)]
struct Said {
    in_force_nanoseconds: u64,
    made_nanoseconds: u64,
}

/// A capture that ends with this.
struct Capture(Child);

impl Drop for Capture {
    fn drop(&mut self) {
        let _ended_already = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _nobody_asks = self.0.wait();
    }
}

/// Exchanges the filter of a capture on the receiving interface `times` times.
pub(super) fn measure(network: &Network, source: &'static str, times: u32) -> Result<Vec<Ctl>, Failure> {
    let weir = find(WEIR).ok_or_else(|| Failure::new("cannot find weir"))?;
    let folder = tidy::folder().map_err(failed("create a directory"))?;
    let socket = folder.path().join("control");
    let mut capture = Command::new(&weir);
    capture.args(["capture", "-i", &network.pair().rx.name, "--source", source, "-q", "-w", "/dev/null"]);
    capture.arg("--control").arg(&socket).arg("udp");
    let words = folder.path().join("words");
    let file = File::create(&words).map_err(failed("create a file"))?;
    capture.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let _capture = Capture(network.rx().spawn(&mut capture).map_err(failed("start weir capture"))?);
    let call = |text: &str| {
        let mut command = Command::new(&weir);
        command.args(["ctl", "filter", "--json", "--target"]).arg(&socket).arg(text);
        let begun = Instant::now();
        let output = command.output().map_err(failed("start weir ctl"))?;
        Ok::<_, Failure>((begun.elapsed(), output))
    };
    let begun = Instant::now();
    loop {
        let (_, output) = call("udp")?;
        if output.status.success() {
            break;
        }
        if begun.elapsed() > PATIENCE {
            let (told, said) = (String::from_utf8_lossy(&output.stderr), fs::read_to_string(&words));
            let said = said.unwrap_or_default();
            let what = format_args!("the capture did not answer: {}; it said: {}", told.trim(), said.trim());
            return Err(Failure::new(what));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let mut samples = Vec::new();
    for number in 0..times {
        let (process, output) = call(["tcp port 443 and net 10.0.0.0/8", "udp"][number as usize % 2])?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::new(format_args!("weir ctl filter: {}", said.trim())));
        }
        let said: Said =
            serde_json::from_slice(&output.stdout).map_err(failed("read the output of weir ctl"))?;
        let [made, in_force] =
            [said.made_nanoseconds, said.in_force_nanoseconds].map(|time| time as f64 / 1e3);
        samples.push(Ctl { source, made, in_force, process: process.as_secs_f64() * 1e6 });
    }
    let spread = |time: fn(&Ctl) -> f64| Spread::of(samples.iter().map(time));
    if let [Some(made), Some(in_force), Some(process)] =
        [spread(|ctl| ctl.made), spread(|ctl| ctl.in_force), spread(|ctl| ctl.process)]
    {
        style::say(format_args!(
            "weir ctl filter, {source}, us: compiled and loaded {made:.0}, in place {in_force:.0}, the whole process {process:.0}"
        ));
    }
    Ok(samples)
}
