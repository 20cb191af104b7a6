//! The C program that counts packets with libpcap's functions, whichever library it runs on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::failure::{Failure, failed};
use crate::files::SIZE;
use crate::program::{Counts, Program, find};

/// Its file.
pub(crate) const NAME: &str = "count";
const SOURCE: &str = include_str!("count.c");
/// Debian's packages needed to compile it.
const PACKAGES: &str = "apt-get install gcc libc6-dev libpcap-dev";

/// What the C program says about the packets it has counted.
#[derive(Debug, Deserialize)]
pub(crate) struct Counted {
    pub(crate) packets: u64,
    bytes: u64,
    unordered: u64,
    dropped: u64,
    pub(crate) nanoseconds: u64,
    pub(crate) cpu_nanoseconds: u64,
}

impl Counted {
    /// Parses its output.
    pub(crate) fn parse(stdout: &str) -> Option<Self> {
        serde_json::from_str(stdout).ok()
    }

    /// Whether all packets were whole, and came in the order in which they were made. `size`: their bytes.
    pub(crate) fn is_right(&self, size: u32) -> bool {
        self.unordered == 0 && self.is_whole(size)
    }

    /// Whether all packets were whole. Those of several queues have no common order.
    fn is_whole(&self, size: u32) -> bool {
        self.bytes == self.packets * u64::from(size)
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts { dropped: Some(self.dropped), ..Counts::of(self.packets) }
    }
}

/// Compiles it in a directory, and returns where it is.
pub(crate) fn compile(dir: &Path) -> Result<PathBuf, Failure> {
    compile_source(dir, NAME, SOURCE)
}

/// Compiles a C program that uses libpcap in a directory, and returns where it is.
pub(crate) fn compile_source(dir: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let cc = find("cc").ok_or_else(|| {
        Failure::new(format_args!(
            "cannot find cc, which compiles {name}.c: it is not installed; try {PACKAGES}"
        ))
    })?;
    let (source, program) = (dir.join(format!("{name}.c")), dir.join(name));
    fs::write(&source, text).map_err(failed(format_args!("write {name}.c")))?;
    let mut command = Command::new(cc);
    command.args(["-std=c11", "-D_GNU_SOURCE", "-O2", "-o"]).arg(&program);
    let output = command.arg(&source).arg("-lpcap").output().map_err(failed("run cc"))?;
    if output.status.success() {
        return Ok(program);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format_args!("cannot compile {name}.c: {}; try {PACKAGES}", said.trim())))
}

/// The program at `place` as a reader of packets of [`SIZE`] bytes from a device.
pub(crate) fn counting(place: PathBuf, function: &'static str) -> Program {
    // It asks for a time-out of 100 ms.
    let program =
        Program::new([NAME, ""], "ready", 300, vec![function, "device", "{interface}"], |stdout, _| {
            Some(Counted::parse(stdout).filter(|counted| counted.is_right(SIZE))?.counts())
        });
    Program { place: Some(place), ..program }
}

/// The same for packets from several queues.
pub(crate) fn counting_queues(place: PathBuf, function: &'static str) -> Program {
    let parse = |stdout: &str, _: &str| {
        Some(Counted::parse(stdout).filter(|counted| counted.is_whole(SIZE))?.counts())
    };
    Program { parse, ..counting(place, function) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_cut_or_mixed_packets_is_no_count() {
        let parse = |bytes, unordered| {
            let text = format!(
                r#"{{"packets": 7, "bytes": {bytes}, "unordered": {unordered}, "dropped": 2, "nanoseconds": 5, "cpu_nanoseconds": 4}}"#
            );
            (counting(PathBuf::new(), "loop").parse)(&text, "")
        };
        assert_eq!(parse(420, 0), Some(Counts { dropped: Some(2), ..Counts::of(7) }));
        assert_eq!((parse(419, 0), parse(420, 1)), (None, None));
    }
}
