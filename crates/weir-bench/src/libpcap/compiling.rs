//! Compiling a filter of many hosts.

use serde::{Deserialize, Serialize};

use super::both::{Both, Library, SYSTEM, WEIR};
use super::{Part, Plan};
use crate::bars::{Bar, Wanted};
use crate::failed;
use crate::failure::Failure;
use crate::spread::Spread;
use crate::style;

/// What is asked for is asked for this many hosts.
pub(super) const HOSTS: u32 = 1000;

/// What the C program says.
#[derive(Debug, Deserialize)]
struct Compiled {
    instructions: u32,
    /// Addresses about which the filter errs.
    wrong: u32,
    nanoseconds: u64,
    cpu_nanoseconds: u64,
}

/// One compilation.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    library: &'static str,
    hosts: u32,
    round: u32,
    instructions: u32,
    seconds: f64,
    cpu_seconds: f64,
    /// What is not as it has to be.
    pub(super) problem: Option<String>,
}

/// All rounds; the system's library only in the first, as it takes most of a minute.
pub(super) fn measure(plan: &Plan, both: &Both) -> Result<Vec<Sample>, Failure> {
    let mut samples = Vec::new();
    if !plan.parts.contains(&Part::Compile) {
        return Ok(samples);
    }
    for round in 1..=plan.rounds {
        for library in [&SYSTEM, &WEIR].into_iter().filter(|library| round == 1 || library.name == WEIR.name)
        {
            let sample = sample(plan.hosts, round, library, both)?;
            style::say(format_args!(
                "[{round}] pcap_compile of {} hosts, {}: {}, {} instructions  {}",
                plan.hosts,
                library.title,
                time(sample.seconds),
                sample.instructions,
                style::stderr().red(sample.problem.as_deref().unwrap_or_default())
            ));
            samples.push(sample);
        }
    }
    Ok(samples)
}

fn sample(hosts: u32, round: u32, library: &Library, both: &Both) -> Result<Sample, Failure> {
    let mut command = both.command(&both.counter(), library);
    let output = command.args(["compile", &hosts.to_string()]).output();
    let output = output.map_err(failed("run the compiling program"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure::new(format_args!("{}: {hosts} hosts: {}", library.title, said.trim())));
    }
    let compiled: Compiled = serde_json::from_slice(&output.stdout).map_err(failed("read the result"))?;
    let Compiled { instructions, wrong, nanoseconds, cpu_nanoseconds } = compiled;
    Ok(Sample {
        library: library.name,
        hosts,
        round,
        instructions,
        seconds: nanoseconds as f64 / 1e9,
        cpu_seconds: cpu_nanoseconds as f64 / 1e9,
        problem: (wrong > 0).then(|| format!("the filter errs about {wrong} addresses")),
    })
}

/// The system's one measurement beside each of ours.
pub(super) fn bars(samples: &[Sample]) -> Vec<Bar> {
    let ratio = |seconds: fn(&Sample) -> f64| {
        let whole = |sample: &&Sample| sample.hosts == HOSTS;
        let theirs = samples.iter().filter(whole).find(|sample| sample.library == SYSTEM.name)?;
        let ours = samples.iter().filter(whole).filter(|sample| sample.library == WEIR.name);
        Spread::of(ours.map(|ours| seconds(theirs) / seconds(ours)))
    };
    let name = format!("pcap_compile of {HOSTS} hosts: weir / libpcap");
    let bar = Bar::new(&name, None, Wanted::AtLeast(1000.0), "times", ratio(|sample| sample.seconds));
    vec![Bar { undisturbed: ratio(|sample| sample.cpu_seconds), ..bar }]
}

/// A table for people.
pub(super) fn table(samples: &[Sample]) -> Option<(String, Vec<Vec<String>>)> {
    let hosts = samples.first()?.hosts;
    let mut rows = vec![["", "time: median (range)", "instructions"].map(str::to_owned).to_vec()];
    for library in [SYSTEM, WEIR] {
        let of = || samples.iter().filter(|sample| sample.library == library.name);
        let Some(Spread { median, min, max }) = Spread::of(of().map(|sample| sample.seconds)) else {
            continue;
        };
        let instructions = of().map(|sample| sample.instructions).max().unwrap_or(0);
        let [median, min, max] = [median, min, max].map(time);
        rows.push(vec![
            library.title.to_owned(),
            format!("{median} ({min}..{max})"),
            instructions.to_string(),
        ]);
    }
    Some((format!("pcap_compile of {hosts} hosts, optimised"), rows))
}

fn time(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.2} ms", seconds * 1e3) } else { format!("{seconds:.1} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(library: &Library, hosts: u32, round: u32, seconds: f64) -> Sample {
        let (library, instructions, problem) = (library.name, 1, None);
        Sample { library, hosts, round, instructions, seconds, cpu_seconds: seconds, problem }
    }

    #[test]
    fn fewer_hosts_say_nothing_of_the_target() {
        let judged = |hosts| {
            let turns = [(&SYSTEM, 1, 40.0), (&WEIR, 1, 0.02), (&WEIR, 2, 0.05), (&WEIR, 3, 0.04)];
            let samples = turns.map(|(library, round, seconds)| sample(library, hosts, round, seconds));
            bars(&samples)[0].judged
        };
        assert_eq!((judged(HOSTS), judged(200)), (Some(1000.0), None));
    }
}
