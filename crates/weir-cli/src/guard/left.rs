//! `weir guard --list` and `--end`: rules that are in force without a process (`--on-exit closed`).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use weir::Error;
use weir::guard::KeptRules;
use weir_render::json;

use super::{GuardArgs, report};
use crate::failure::Failure;
use crate::{out, style};

/// The output of `--json`. Scripts rely on field names: they may be added to, not changed.
#[derive(Debug, Serialize)]
struct Listing {
    /// Always `guards`.
    r#type: &'static str,
    version: &'static str,
    guards: Vec<One>,
}

#[derive(Debug, Serialize)]
struct One {
    interface: String,
    /// Whether received packets meet the rules.
    received: bool,
    /// Whether sent packets do.
    sent: bool,
    /// Whether the interface no longer exists.
    dead: bool,
    /// The path for `weir guard --end -i`.
    path: PathBuf,
}

/// Prints the list on standard output.
pub(super) fn list(as_json: bool) -> Result<(), Failure> {
    let guards: Vec<One> = KeptRules::all()?.iter().map(One::of).collect();
    let mut text = Vec::new();
    if as_json {
        let listing = Listing { r#type: "guards", version: env!("CARGO_PKG_VERSION"), guards };
        json::line(&mut text, &listing).map_err(Failure::new)?;
    } else {
        text.extend_from_slice(style::lines(&in_words(&guards)).as_bytes());
    }
    out::print(&text)
}

/// Takes off the rules of an interface.
pub(super) fn end(args: &GuardArgs) -> Result<(), Failure> {
    let interface = args.interface();
    if interface.starts_with('/') {
        KeptRules::at(Path::new(interface))?.end()?;
    } else {
        args.chosen()?.guard()?.end().map_err(not_ended)?;
    }
    if !args.quiet {
        style::say(format_args!("{interface}: the rules are off"));
    }
    Ok(())
}

/// Returns the failure, with where else rules may be.
fn not_ended(error: Error) -> Failure {
    let is_gone = matches!(error, Error::NoSuchEndpoint { .. });
    let failure = Failure::from(error);
    match is_gone {
        true => failure
            .hint("to list all rules that stay in force, even for deleted interfaces: weir guard --list"),
        false => failure,
    }
}

fn in_words(guards: &[One]) -> String {
    if guards.is_empty() {
        return "no rules stay in force without a process\n".to_owned();
    }
    let mut text = String::new();
    for One { interface, received, sent, dead, path } in guards {
        let packets = match (received, sent) {
            (true, true) => "received and sent",
            (true, false) => "received",
            _ => "sent",
        };
        let what = match dead {
            true => "its rules are off".to_owned(),
            false => format!("rules are in force for {packets} packets"),
        };
        let end = report::end(&path.display().to_string());
        let _infallible = writeln!(text, "{interface}: {what}\n  to take them off: {end}");
    }
    text
}

impl One {
    fn of(kept: &KeptRules) -> Self {
        Self {
            interface: kept.interface().to_owned(),
            received: kept.received(),
            sent: kept.sent(),
            dead: kept.is_dead(),
            path: kept.directory().to_owned(),
        }
    }
}
