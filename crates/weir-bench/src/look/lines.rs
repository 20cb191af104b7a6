//! The highest rate at which every packet gets its line, or object, in a file.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use weir_lab::Rate;

use super::Look;
use crate::experiment::{Judged, Outcome, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::highest::highest;
use crate::program::{Counts, Program, WEIR};
use crate::sample::Lab;
use crate::tidy;
use crate::units;
use crate::wanted::Wanted;

/// Bytes of a frame.
const SIZE: usize = 60;
/// The lowest rate is the highest that the interface takes divided by this: tshark is that slow.
const RANGE: f64 = 1024.0;
/// Share of the sending time for which a program may be busy after it, but at least [`LEAST_BEHIND`], beyond what it takes at the
/// lowest rate: one that keeps up has little left then, whatever its buffers hold. tshark is always half a second behind dumpcap.
const BEHIND: u32 = 10;
const LEAST_BEHIND: Duration = Duration::from_millis(150);
/// How long a program that does not keep up gets for the rest, beyond the sending time.
const PATIENCE: Duration = Duration::from_secs(2);

/// A program that prints packets to a file.
pub(super) struct Contestant {
    pub(super) title: &'static str,
    program: Program,
    text: Text,
}

/// What is in the file.
#[derive(Clone, Copy, PartialEq)]
enum Text {
    /// A line for each packet: the time, and what is the same for all of them.
    Lines,
    /// An object for each packet, which begins with this. Others are about something else.
    Objects { begin: &'static str, length: &'static str },
}

/// Those that are compared.
pub(super) const VERSUS: [[&str; 2]; 2] =
    [["lines, weir", "lines, tcpdump"], ["objects, weir --json", "objects, tshark -T ek"]];

/// All of them. Each has 16 MiB for packets of the one queue that has traffic.
pub(super) fn contestants() -> [Contestant; 4] {
    let weir = |arguments: &[&'static str]| {
        let how = ["-i", "{interface}", "-B", "16MiB"];
        program(WEIR, "", "; source ", 50, [&["capture"], arguments, &how].concat())
    };
    let tcpdump = vec!["-i", "{interface}", "-n", "-Z", "root", "-B", "16384"];
    let tshark = vec!["-i", "{interface}", "-n", "-T", "ek", "-B", "16"];
    let ours = Text::Objects { begin: "{\"number\":", length: "/length" };
    let theirs = Text::Objects { begin: "{\"timestamp\":", length: "/layers/frame/frame_frame_len" };
    let contestant = |title, program, text| Contestant { title, program, text };
    [
        contestant(VERSUS[0][0], weir(&["-n"]), Text::Lines),
        contestant(VERSUS[0][1], program("tcpdump", "tcpdump", "listening on", 1200, tcpdump), Text::Lines),
        contestant(VERSUS[1][0], weir(&["--json"]), ours),
        contestant(VERSUS[1][1], program("tshark", "tshark", "Capture started", 600, tshark), theirs),
    ]
}

/// `batch`: milliseconds for which packets may wait.
pub(super) fn program(
    name: &'static str,
    package: &'static str,
    ready: &'static str,
    batch: u64,
    arguments: Vec<&'static str>,
) -> Program {
    // Its output is counted, not parsed.
    Program::new([name, package], ready, batch, arguments, |_, _| Some(Counts::of(0)))
}

/// One rate.
#[derive(Debug)]
struct Step {
    /// Packets a second that came.
    rate: f64,
    accepted: u64,
    /// Lines or objects in the file; none if the program was too far behind to be waited for.
    printed: Option<u64>,
    /// For how long it was busy after the last packet.
    behind_seconds: Option<f64>,
}

impl Step {
    /// `always`: seconds for which the program is busy at any rate.
    fn keeps_up(&self, sending: Duration, always: f64) -> bool {
        let most = always + (sending / BEHIND).max(LEAST_BEHIND).as_secs_f64();
        self.printed == Some(self.accepted) && self.behind_seconds.is_some_and(|behind| behind <= most)
    }
}

/// Packets per second that the interface takes when nobody captures.
pub(super) fn fastest(lab: &Lab) -> Result<f64, Failure> {
    let (_, mut generator) = lab.generator(SIZE)?;
    let sent = generator.send_for(Duration::from_millis(100)).map_err(failed("send"))?;
    Ok(sent.accepted as f64 / sent.elapsed.as_secs_f64())
}

pub(super) fn measure(
    look: &Look,
    contestant: &Contestant,
    fastest: f64,
    turn: &Turn,
) -> Result<Taken, Failure> {
    let (mut tried, mut problem) = (1, None);
    let lowest = fastest / RANGE;
    let slowest = step(look, contestant, lowest, &mut problem)?;
    let always = slowest.behind_seconds.unwrap_or(0.0);
    let rate = highest([lowest, fastest], look.steps, |rate| {
        let step = step(look, contestant, rate, &mut problem)?;
        tried += 1;
        Ok::<_, Failure>(step.keeps_up(look.duration, always).then_some(step.rate))
    })?;
    let mut taken = Taken { problems: problem.into_iter().collect(), ..Taken::default() };
    if let Some(rate) = rate {
        taken.add(turn, "rate", rate / 1e3);
    }
    taken.add(turn, "tried", f64::from(tried));
    Ok(taken)
}

fn step(
    look: &Look,
    contestant: &Contestant,
    rate: f64,
    problem: &mut Option<String>,
) -> Result<Step, Failure> {
    let lab = &look.lab;
    // A folder of its own: tshark leaves a file in it if it is killed.
    let dir = tidy::folder_in(&look.dir).map_err(failed("create a directory"))?;
    let path = dir.path().join("output");
    let file = File::create(&path).map_err(failed("create a file"))?;
    let temporary = vec![("TMPDIR", dir.path().as_os_str().to_owned())];
    let program = Program { environment: temporary, ..contestant.program.clone() };
    let reader = program.start_to(&lab.pair().rx, None, Stdio::from(file))?;

    let (_, generator) = lab.generator(SIZE)?;
    let mut generator =
        generator.rate(Rate::PerSecond(units::whole(rate))).map_err(failed("prepare to send"))?;
    let count = units::whole(rate * look.duration.as_secs_f64()).max(1);
    let sent = generator.send(count).map_err(failed("send"))?;
    let (rate, accepted) = (sent.accepted as f64 / sent.elapsed.as_secs_f64(), sent.accepted);
    let Ok(behind) = reader.settle_within(look.duration + PATIENCE) else {
        reader.give_up()?;
        return Ok(Step { rate, accepted, printed: None, behind_seconds: None });
    };
    match reader.finish() {
        Ok(_) => {}
        // tshark once did not end after Ctrl-C: there is no knowing what it would have printed.
        Err(_) if contestant.program.name != WEIR => {
            return Ok(Step { rate, accepted, printed: None, behind_seconds: None });
        }
        Err(failure) => return Err(failure),
    }
    let file = File::open(&path).map_err(failed("open the output"))?;
    let printed = match contestant.text.count(BufReader::new(file), problem) {
        Ok(printed) => printed,
        Err(error) => return Err(failed("read the output")(error)),
    };
    if printed > accepted {
        problem.get_or_insert_with(|| format!("{printed} lines for {accepted} packets"));
    }
    Ok(Step { rate, accepted, printed: Some(printed), behind_seconds: Some(behind.as_secs_f64()) })
}

impl Text {
    /// Counts the packets, and checks what is printed of them.
    fn count(self, mut file: impl BufRead, problem: &mut Option<String>) -> std::io::Result<u64> {
        let (mut line, mut first, mut count) = (Vec::new(), Vec::new(), 0);
        loop {
            line.clear();
            if file.read_until(b'\n', &mut line)? == 0 {
                return Ok(count);
            }
            match self {
                // A mark for what was not printed; what tcpdump prints on Ctrl-C.
                Self::Lines if line.starts_with(b"[") || line == b"\n" => continue,
                Self::Lines => {
                    let packet = packet(&line);
                    if first.is_empty() {
                        first = packet.to_vec();
                    }
                    let length = format!(" UDP, length {}", SIZE - 14 - 20 - 8);
                    if packet != first || !packet.ends_with(length.as_bytes()) {
                        problem.get_or_insert_with(|| format!("a wrong line: {}", shown(&line)));
                    }
                }
                Self::Objects { begin, .. } if !line.starts_with(begin.as_bytes()) => continue,
                // Parsing all of them would take longer than printing them.
                Self::Objects { length, .. } if count % 1024 == 0 => {
                    let object: Option<Value> = serde_json::from_slice(&line).ok();
                    let length = object.as_ref().and_then(|object| object.pointer(length));
                    let length = length.map(|length| length.to_string().replace('"', ""));
                    if length != Some(SIZE.to_string()) {
                        problem.get_or_insert_with(|| format!("a wrong object: {}", shown(&line)));
                    }
                }
                Self::Objects { .. } => {}
            }
            count += 1;
        }
    }
}

/// The part of a line that describes the packet: neither when it came nor what was lost before it.
fn packet(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_end();
    let line = line.strip_suffix(b" lost before]").map_or(line, |line| {
        let end = line.iter().rposition(|&byte| byte == b'[').unwrap_or(0);
        line[..end].trim_ascii_end()
    });
    &line[line.iter().position(|&byte| byte == b' ').unwrap_or(0)..]
}

fn shown(line: &[u8]) -> String {
    format!("{:.200}", line.escape_ascii().to_string())
}

/// Rates as a multiple of the other program's, round by round.
pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let bar = |name, pair, least| {
        Judged::new(name, Wanted::AtLeast(least), "times", outcome.ratios(pair, "rate", None))
    };
    let [lines, objects] = VERSUS;
    vec![
        bar("lines without loss: weir / tcpdump, 60 B", lines, 4.0),
        bar("objects without loss: weir --json / tshark -T ek, 60 B", objects, 8.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: Text, output: &str) -> (u64, Option<String>) {
        let mut problem = None;
        (text.count(output.as_bytes(), &mut problem).expect("memory"), problem)
    }

    #[test]
    fn lines_are_counted_and_compared() {
        let line = "IP 10.0.0.1.1 > 10.0.0.2.2: UDP, length 18\n";
        let lines = format!("10:00:00.000001 {line}[1,204 not printed]\n10:00:00.000002 {line}\n");
        assert_eq!(count(Text::Lines, &lines), (2, None));
        let (number, problem) = count(Text::Lines, &lines.replace("02 IP 10.0.0.1.1", "02 IP 10.0.0.1.7"));
        assert!(number == 2 && problem.is_some());
        assert!(count(Text::Lines, &lines.replace("length 18", "length 17")).1.is_some());
        assert_eq!(count(Text::Lines, &lines.replace("18\n\n", "18  [1,204 lost before]\n")), (2, None));
    }

    #[test]
    fn objects_are_counted_among_others() {
        let [.., ours, theirs] = contestants().map(|contestant| contestant.text);
        let object = r#"{"number":1,"length":60}"#;
        let others = r#"{"type":"not_printed","packets":7}"#;
        assert_eq!(count(ours, &format!("{object}\n{others}\n{object}\n")), (2, None));
        assert!(count(ours, "{\"number\":1,\"length\":59}\n").1.is_some());
        let object = r#"{"timestamp":"1","layers":{"frame":{"frame_frame_len":"60"}}}"#;
        assert_eq!(count(theirs, &format!("{{\"index\":{{}}}}\n{object}\n")), (1, None));
        assert!(count(theirs, "{\"timestamp\":\n").1.is_some());
    }

    #[test]
    fn whoever_is_behind_or_loses_a_packet_does_not_keep_up() {
        let keeps_up = |printed, behind| {
            let step = Step { rate: 1.0, accepted: 10, printed, behind_seconds: behind };
            step.keeps_up(Duration::from_secs(2), 0.5)
        };
        assert!(keeps_up(Some(10), Some(0.7)));
        assert!(!keeps_up(Some(9), Some(0.0)) && !keeps_up(Some(10), Some(0.71)) && !keeps_up(None, None));
    }
}
