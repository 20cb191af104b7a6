//! Output of libbpf and the verifier, kept for the error instead of being printed.

use std::cell::RefCell;
use std::mem::{ManuallyDrop, take};

use libbpf_rs::{PrintLevel, set_print};
use weir_sys::bpf::program::last_words;
use weir_sys::kernel;
use weir_sys::privilege::{self, Capabilities};

/// A program that failed to load.
#[derive(Debug, thiserror::Error)]
#[error("{}", told(program, source, log))]
pub struct LoadError {
    /// Name of the program.
    pub program: &'static str,
    /// libbpf's error.
    pub source: libbpf_rs::Error,
    /// Output of libbpf and the verifier, in order; may be empty.
    pub log: String,
    /// The process lacked some of the capabilities that programs need.
    pub unprivileged: bool,
}

impl LoadError {
    /// Returns whether the kernel refused because of missing privileges. The verifier also rejects programs with
    /// `EACCES`; but then it logs why, and the process has all capabilities.
    pub fn is_permission(&self) -> bool {
        let denied = self.source.kind() == libbpf_rs::ErrorKind::PermissionDenied;
        denied && (self.unprivileged || self.verifier().is_none())
    }

    /// Returns whether the kernel had no memory for the maps.
    pub fn is_memory(&self) -> bool {
        self.source.kind() == libbpf_rs::ErrorKind::OutOfMemory
    }

    /// Returns the verifier's complaint, if it rejected the program.
    pub fn verifier(&self) -> Option<&str> {
        Some(verifier(&self.log)?.1)
    }
}

thread_local! {
    /// Without a destructor: that would keep a shared library loaded of which this is part (weir-pcap).
    static LOG: RefCell<ManuallyDrop<String>> = const { RefCell::new(ManuallyDrop::new(String::new())) };
}

/// Runs `load` and adds libbpf's output to its error.
///
/// # Errors
///
/// Those of `load`.
pub fn logged<T>(
    program: &'static str,
    load: impl FnOnce() -> Result<T, libbpf_rs::Error>,
) -> Result<T, LoadError> {
    let log = || LOG.with_borrow_mut(|log| take(&mut **log));
    let _earlier = log();
    set_print(Some((PrintLevel::Warn, |_, line| LOG.with_borrow_mut(|log| log.push_str(&line)))));
    let loaded = load();
    let log = log();
    loaded.map_err(|source| LoadError { program, source, log, unprivileged: unprivileged() })
}

/// Returns whether this thread lacks any of the capabilities that programs need. Two of them were split off from
/// `CAP_SYS_ADMIN`, which implies them.
fn unprivileged() -> bool {
    let split = Capabilities::BPF | Capabilities::PERFMON;
    privilege::effective().is_ok_and(|effective| {
        let split = effective.contains(split) || effective.contains(Capabilities::SYS_ADMIN);
        !split || !effective.contains(Capabilities::NET_ADMIN)
    })
}

/// Finds in libbpf's output the program that the verifier rejected, and the verifier's last lines.
fn verifier(log: &str) -> Option<(&str, &str)> {
    const BEGIN: &str = "-- BEGIN PROG LOAD LOG --";
    const END: &str = "-- END PROG LOAD LOG --";
    let (head, said) = log.rsplit_once(BEGIN)?;
    // `libbpf: prog 'NAME': -- BEGIN PROG LOAD LOG --`
    let program = head.rsplit('\'').nth(1).unwrap_or_default();
    let said = said.split_once(END).map_or(said, |(said, _)| said);
    Some((program, last_words(said)?))
}

/// Formats the error. The first line makes sense on its own.
fn told(program: &str, source: &libbpf_rs::Error, log: &str) -> String {
    let (kernel, lines) = (kernel::release(), last_lines(log));
    match verifier(log) {
        Some((program, words)) => {
            format!(
                "the verifier of Linux {kernel} rejects eBPF program `{program}`: {words} ({source}){lines}"
            )
        }
        None => format!("cannot load eBPF program `{program}` on Linux {kernel}: {source}{lines}"),
    }
}

/// Returns the last lines of a log, where the verifier states its complaint.
fn last_lines(log: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    last.iter().map(|line| format!("\n  {line}")).collect()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Output of libbpf 1.5 on Linux 6.12.
    const REFUSED: &str = "libbpf: prog 'capture_tagged': BPF program load failed: Permission denied
libbpf: prog 'capture_tagged': -- BEGIN PROG LOAD LOG --
0: R1=ctx() R10=fp0
214: (85) call bpf_xdp_load_bytes#189
R4 invalid zero-sized read: u64=[0,4294967295]
processed 209 insns (limit 1000000) max_states_per_insn 0 total_states 12 peak_states 12 mark_read 4
-- END PROG LOAD LOG --
libbpf: prog 'capture_tagged': failed to load: -13
libbpf: failed to load object 'xdp_bpf'
";

    fn error(log: &str, unprivileged: bool) -> LoadError {
        let source = io::Error::from_raw_os_error(13).into();
        LoadError { program: "capture", source, log: log.to_owned(), unprivileged }
    }

    #[test]
    fn a_program_that_is_not_liked_lacks_no_privilege() {
        let refused = error(REFUSED, false);
        assert_eq!(refused.verifier(), Some("R4 invalid zero-sized read: u64=[0,4294967295]"));
        assert!(!refused.is_permission());
        // Without CAP_PERFMON, the verifier rejects what it accepts otherwise.
        assert!(error(REFUSED, true).is_permission());
        // The verifier did not even run: an LSM or a user namespace refused.
        assert!(error("libbpf: failed to load object 'xdp_bpf'\n", false).is_permission());
    }

    #[test]
    fn the_first_line_names_the_kernel_the_program_and_why() {
        let text = error(REFUSED, false).to_string();
        let first = text.lines().next().unwrap_or_default();
        let says = "rejects eBPF program `capture_tagged`: R4 invalid zero-sized read: u64=[0,4294967295] (";
        assert!(first.starts_with("the verifier of Linux ") && first.contains(says), "{first}");
        assert!(first.contains(&kernel::release()), "{first}");
        assert!(text.contains("call bpf_xdp_load_bytes"), "{text}");
    }
}
