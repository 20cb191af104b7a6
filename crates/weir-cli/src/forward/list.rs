//! `weir forward --list`: forwarding that runs in the kernel without a process.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;
use weir::forward::Pinned;
use weir_render::json;

use crate::failure::Failure;
use crate::{out, style, units};

/// The output of `--json`. Scripts rely on field names: they may be added to, not changed.
#[derive(Debug, Serialize)]
struct Listing {
    /// Always `forwards`.
    r#type: &'static str,
    version: &'static str,
    forwards: Vec<One>,
}

#[derive(Debug, Serialize)]
struct One {
    from: String,
    to: String,
    both: bool,
    forwarded: u64,
    lost: u64,
    /// Whether an interface no longer exists.
    dead: bool,
    /// The path for `weir forward --end`.
    path: PathBuf,
}

/// Prints the list on standard output.
pub(super) fn print(as_json: bool) -> Result<(), Failure> {
    let forwards = Pinned::all()?.iter().map(One::of).collect::<Result<Vec<_>, Failure>>()?;
    let mut text = Vec::new();
    if as_json {
        let listing = Listing { r#type: "forwards", version: env!("CARGO_PKG_VERSION"), forwards };
        json::to_writer(&mut text, &listing).map_err(Failure::new)?;
        text.push(b'\n');
    } else {
        text.extend_from_slice(style::lines(&in_words(&forwards)).as_bytes());
    }
    out::print(&text)
}

fn in_words(forwards: &[One]) -> String {
    if forwards.is_empty() {
        return "no forwarding is running without a process\n".to_owned();
    }
    let mut text = String::new();
    for One { from, to, both, forwarded, lost, dead, path } in forwards {
        let arrow = if *both { "<->" } else { "->" };
        let (forwarded, lost, path) = (units::grouped(*forwarded), units::grouped(*lost), path.display());
        let dead = if *dead { "; an interface is gone" } else { "" };
        let _infallible = writeln!(
            text,
            "{from} {arrow} {to}: {forwarded} packets forwarded, {lost} lost{dead}\n  to end it: weir forward --end {path}"
        );
    }
    text
}

impl One {
    fn of(pinned: &Pinned) -> Result<Self, Failure> {
        let ([from, to], total) = (pinned.endpoints().map(str::to_owned), pinned.stats()?.total());
        Ok(Self {
            from,
            to,
            both: pinned.both(),
            forwarded: total.forwarded,
            lost: total.lost(),
            dead: pinned.is_dead(),
            path: pinned.directory().to_owned(),
        })
    }
}
