//! `--repair`: copies the intact parts of a damaged file to a new file.

use std::path::Path;

use weir::reader::{Joined, RepairError, repair};

use crate::failure::Failure;
use crate::{style, units};

/// Most ranges of lost bytes that are reported one by one.
const TOLD: usize = 20;

/// Copies the intact parts and reports what was lost.
pub(crate) fn run(input: &Path, output: &Path) -> Result<(), Failure> {
    let repaired = repair(input, output).map_err(|error| match error {
        RepairError::Read(error) => super::failure(error),
        RepairError::Exists { .. } => {
            Failure::new(error).hint("name another file with -w, or remove this one first")
        }
        other => Failure::new(other),
    })?;
    let paint = style::stderr();
    for range in repaired.lost.iter().take(TOLD) {
        style::say(format_args!(
            "{}: bytes {} to {}: {}",
            paint.yellow("lost"),
            range.start,
            range.end.saturating_sub(1),
            units::bytes(range.end - range.start)
        ));
    }
    if repaired.lost.len() > TOLD {
        style::say(format_args!("{}: and {} more places", paint.yellow("lost"), repaired.lost.len() - TOLD));
    }
    for further in repaired.further.iter().take(TOLD) {
        let packets = match further.packets {
            Joined::Whole => "its packets follow".to_owned(),
            Joined::CutTimes => {
                "its packets follow, with times truncated to microseconds like those of the first".to_owned()
            }
            Joined::LeftOut => {
                format!(
                    "its packets are lost: a pcap file has one link type, and theirs is {}",
                    further.link_type
                )
            }
        };
        style::say(format_args!(
            "{}: another file begins at byte {}; {packets}",
            paint.yellow("note"),
            further.position
        ));
    }
    if let Some(reason) = &repaired.ended {
        style::say(format_args!("{}: {reason}", paint.yellow("note")));
    }
    let lost = match repaired.lost_bytes {
        0 => "no bytes lost".to_owned(),
        bytes => format!("{} bytes lost", units::grouped(bytes)),
    };
    style::say(format_args!(
        "{}, {} -> {}; {lost}",
        units::packets(repaired.packets),
        units::bytes(repaired.bytes),
        output.display()
    ));
    Ok(())
}
