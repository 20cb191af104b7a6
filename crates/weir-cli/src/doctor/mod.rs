//! `weir doctor`: checks whether this kernel, this user and these interfaces allow capturing, and suggests fixes.
//!
//! Everything is found out by trying, in a private network namespace if something has to be attached. The host's
//! interfaces are not touched, and nothing is left behind.

mod check;
mod interface;
mod kernel;
mod limits;
mod machine;
mod privileges;
mod report;
mod sources;

use clap::Args;
use serde::Serialize;
use weir::SourceKind;

use check::{Check, CheckState, group};

use crate::devices::{self, Auto, Device};
use crate::failure::Failure;
use crate::{out, style};

const EXAMPLES: &str = "\
Examples:
  weir doctor
        Try every source in a private network and check the interfaces that are up.
  weir doctor -i eth0
        Try every source, and check eth0 only.
  weir doctor --json | jq -r '.checks[] | select(.state == \"missing\") | .remedy'
        Print how to fix everything that is missing.

Results:
  ok       works as it should
  note     normal, and good to know
  weak     works, but slower, or packets may be lost
  missing  required by a source
  ?        could not be tested

Exit status: 0 every source works, 1 something is missing, 2 usage error.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Interface to check; may be repeated. Default: all that are up, except loopback.
    #[arg(short, long = "interface", value_name = "IF")]
    interfaces: Vec<String>,

    /// Network namespace: a name known to `ip netns` or Docker, the PID of a process in it, or a
    /// path.
    #[arg(long, value_name = "NS")]
    netns: Option<String>,

    /// Print everything as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`. Scripts rely on field names: they may be added to, not changed.
#[derive(Debug, Serialize)]
struct Diagnosis {
    /// Always `doctor`.
    r#type: &'static str,
    version: &'static str,
    checks: Vec<Check>,
    missing: usize,
    weak: usize,
    /// Sources that work on this machine.
    works: Vec<&'static str>,
    best: Vec<Best>,
}

/// The best source for an interface.
#[derive(Debug, Serialize)]
struct Best {
    interface: String,
    /// Null if none works.
    source: Option<&'static str>,
    why: String,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let mut devices = devices::find(args.netns.as_deref(), &args.interfaces)?;
    if args.interfaces.is_empty() {
        devices.retain(|device| device.up && !device.loopback);
    }
    let diagnosis = diagnose(&devices);
    let text = if args.json {
        format!("{}\n", serde_json::to_string(&diagnosis).map_err(Failure::new)?)
    } else {
        report::report(&diagnosis.checks, &conclusion(&diagnosis), style::columns(), style::stdout())
    };
    out::print(style::lines(&text).as_bytes())?;
    match diagnosis.missing {
        0 => Ok(()),
        1 => Err(Failure::new("1 requirement for capturing is missing")),
        more => Err(Failure::new(format_args!("{more} requirements for capturing are missing"))),
    }
}

fn diagnose(devices: &[Device]) -> Diagnosis {
    let tried = sources::try_all();
    let working = tried.sources.iter().filter(|check| check.state == CheckState::Ok);
    let works: Vec<&'static str> = working.map(|check| check.name).collect();
    let captures = works.len() == tried.sources.len();
    let mut checks = group("sources", tried.sources);
    checks.extend(group("privileges", privileges::checks()));
    checks.extend(group("kernel", kernel::checks(tried.kernel)));
    checks.extend(group("limits", limits::checks()));
    checks.extend(group("machine", machine::checks(captures)));
    for device in devices {
        checks.extend(group(&format!("interface {}", device.name), interface::checks(device)));
    }
    let count = |state| checks.iter().filter(|check: &&Check| check.state == state).count();
    Diagnosis {
        r#type: "doctor",
        version: env!("CARGO_PKG_VERSION"),
        missing: count(CheckState::Missing),
        weak: count(CheckState::Weak),
        best: devices.iter().map(|device| best(device, &works)).collect(),
        works,
        checks,
    }
}

/// Returns the source that `auto` would use: its first choice, or the next one that works.
fn best(device: &Device, works: &[&'static str]) -> Best {
    let Auto { source, why } = &device.auto;
    let interface = device.name.clone();
    let order: &[&str] = match *source {
        Some(SourceKind::Xdp) => &["xdp", "tc", "af_packet"],
        Some(_) => &["tc", "af_packet"],
        None => return Best { interface, source: None, why: why.clone() },
    };
    let source = source.map(SourceKind::as_str);
    match order.iter().find_map(|wanted| works.iter().find(|&works| works == wanted)) {
        Some(found) if Some(*found) == source => Best { interface, source, why: why.clone() },
        Some(found) => {
            let first = source.unwrap_or_default();
            Best {
                interface,
                source: Some(found),
                why: format!("{first} would be best, but does not work here"),
            }
        }
        None => Best { interface, source: None, why: "no source works".to_owned() },
    }
}

/// Returns the last line: what works, and what to use.
fn conclusion(diagnosis: &Diagnosis) -> String {
    if diagnosis.works.is_empty() {
        return "capturing does not work here: fix what is missing above".to_owned();
    }
    let mut text = format!("capturing works with: {}", diagnosis.works.join(", "));
    for best in &diagnosis.best {
        let source = best.source.unwrap_or("nothing");
        text.push_str(&format!("; best on {}: {source} ({})", best.interface, best.why));
    }
    text
}
