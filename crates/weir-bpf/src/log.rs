//! What libbpf and the verifier say, kept for the error instead of being printed.

use std::cell::RefCell;

use libbpf_rs::{PrintLevel, set_print};

/// A program that the kernel did not take.
#[derive(Debug, thiserror::Error)]
#[error("load eBPF program `{program}`: {source}{}", said(log))]
pub struct LoadError {
    /// The program.
    pub program: &'static str,
    /// libbpf's error.
    pub source: libbpf_rs::Error,
    /// What libbpf and the verifier had to say, last lines last; may be empty.
    pub log: String,
}

impl LoadError {
    /// Whether the kernel refused for want of privilege.
    pub fn is_permission(&self) -> bool {
        self.source.kind() == libbpf_rs::ErrorKind::PermissionDenied
    }

    /// Whether the kernel had no memory for the maps.
    pub fn is_memory(&self) -> bool {
        self.source.kind() == libbpf_rs::ErrorKind::OutOfMemory
    }
}

thread_local! {
    static LOG: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `load` and gives its error what libbpf printed meanwhile.
pub(crate) fn logged<T>(
    program: &'static str,
    load: impl FnOnce() -> Result<T, libbpf_rs::Error>,
) -> Result<T, LoadError> {
    LOG.take();
    set_print(Some((PrintLevel::Warn, |_, line| LOG.with_borrow_mut(|log| log.push_str(&line)))));
    load().map_err(|source| LoadError { program, source, log: LOG.take() })
}

/// The last lines of a log, where the verifier says what it did not like.
fn said(log: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    last.iter().map(|line| format!("\n  {line}")).collect()
}
