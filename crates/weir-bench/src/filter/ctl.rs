//! What `weir ctl filter` takes as a process, beside a capture that is a process, too.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weir_lab::Network;

use crate::failure::{Failure, failed};
use crate::program::{WEIR, find, succeeded};
use crate::spread::median;
use crate::tidy;

/// How long a capture may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// A capture that ends with this.
struct Capture(Child);

impl Drop for Capture {
    fn drop(&mut self) {
        let _ended_already = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _nobody_asks = self.0.wait();
    }
}

/// Exchanges the filter of a capture on the receiving interface `times` times. Gives the microseconds from the start of the process to
/// its end: the median.
pub(super) fn measure(network: &Network, source: &str, times: u32) -> Result<f64, Failure> {
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
        command.args(["ctl", "filter", "--target"]).arg(&socket).arg(text);
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
        succeeded("weir ctl filter", Ok(output))?;
        samples.push(process.as_secs_f64() * 1e6);
    }
    Ok(median(samples))
}
