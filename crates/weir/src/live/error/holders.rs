//! The processes that hold eBPF programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

/// Longest command line in messages, in characters.
const LONGEST: usize = 120;

/// A process that holds an eBPF program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The process ID.
    pub pid: u32,
    /// The name of the program that it runs.
    pub command: String,
    /// Its command line; empty if this is not known.
    pub line: String,
}

impl Holder {
    /// Returns whether it runs weir.
    pub(super) fn is_weir(&self) -> bool {
        self.command == "weir"
    }

    fn of(process: &Path, pid: u32) -> Self {
        let read = |name: &str| fs::read(process.join(name)).unwrap_or_default();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let words = read("cmdline");
        let words: Vec<String> = words.split(|&byte| byte == 0).map(text).collect();
        let shown = |letter: char| match letter.is_control() {
            true => letter.escape_default().to_string(),
            false => letter.to_string(),
        };
        let line: String = words.join(" ").trim_end().chars().map(shown).collect();
        let cut = line.char_indices().nth(LONGEST).map(|(at, _)| format!("{}...", &line[..at]));
        Self { pid, command: text(&read("comm")).trim().to_owned(), line: cut.unwrap_or(line) }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = if self.line.is_empty() { &self.command } else { &self.line };
        write!(f, "process {}: {line}", self.pid)
    }
}

/// Returns the processes that have a descriptor of one of these programs, or of a link that attaches it, as far as this user
/// may see them.
pub fn holders(programs: &BTreeSet<u32>) -> BTreeMap<u32, Vec<Holder>> {
    let mut holders: BTreeMap<u32, Vec<Holder>> = BTreeMap::new();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let descriptors = fs::read_dir(process.path().join("fdinfo")).into_iter().flatten().flatten();
        let infos = descriptors.filter_map(|descriptor| fs::read_to_string(descriptor.path()).ok());
        let held: BTreeSet<u32> = infos.filter_map(|info| program_of(&info)).collect();
        for &id in held.intersection(programs) {
            holders.entry(id).or_default().push(Holder::of(&process.path(), pid));
        }
    }
    holders
}

/// Returns the program behind a descriptor, according to `/proc/PID/fdinfo`.
fn program_of(info: &str) -> Option<u32> {
    info.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn holder(command: &str, line: &str) -> Holder {
        Holder { pid: 4711, command: command.to_owned(), line: line.to_owned() }
    }

    #[test]
    fn descriptors_tell_their_program() {
        let link = "pos:\t0\nflags:\t02000000\nlink_type:\txdp\nlink_id:\t4\nprog_tag:\tab\nprog_id:\t27\nifindex:\t2\n";
        assert_eq!(program_of(link), Some(27));
        assert_eq!(program_of("pos:\t0\nflags:\t02\nmap_type:\t2\nmap_id:\t5\n"), None);
    }

    #[test]
    fn processes_are_named_by_their_command_lines() {
        let own = Holder::of(Path::new("/proc/self"), std::process::id());
        assert!(!own.command.is_empty() && own.line.contains("weir"), "{own:?}");
        let process = tempfile::tempdir().expect("a directory");
        let args = ["weir", "capture\n", &"x".repeat(200)].join("\0") + "\0";
        fs::write(process.path().join("cmdline"), args).expect("a file");
        let line = Holder::of(process.path(), 1).line;
        assert!(
            line.starts_with("weir capture\\n xxx") && line.ends_with("x...") && line.len() == 123,
            "{line}"
        );
        assert_eq!(holder("tcpdump", "").to_string(), "process 4711: tcpdump");
    }
}
