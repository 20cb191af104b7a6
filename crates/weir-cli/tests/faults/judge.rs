//! What is demanded of a run, whatever has failed in it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::strace::{Fault, Run};
use crate::{Case, names};

/// All that is wrong.
pub(crate) fn complaints(case: &Case, run: &Run, directory: &TempDir, fault: Option<&Fault>) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some(status) = run.status else {
        return vec![format!("it does not end: {}", run.stderr)];
    };
    let code = status.code();
    if !matches!(code, Some(0..=2)) {
        wrong.push(format!("it ends with {status}: {}", run.stderr));
    }
    if run.stderr.contains("panicked") {
        wrong.push(format!("it panics: {}", run.stderr));
    }
    let failed = code != Some(0);
    if failed && fault.is_none() {
        wrong.push(format!("{status}: {}", run.stderr));
    }
    // A signal may come at any time, and interrupts what waits.
    let waits = run.injected().is_some_and(|line| !line.contains("O_DIRECTORY") && !line.contains("O_PATH"));
    if failed && waits && fault.is_some_and(|fault| fault.error == "EINTR") {
        wrong.push(format!("interrupted, it gives up: {}", run.stderr));
    }
    // Where standard error itself could not be written nothing can be said.
    let told = run.stderr.lines().any(|line| {
        line.strip_prefix("weir: ").is_some_and(|why| why.starts_with("cannot ") || why.contains(": "))
    });
    if failed && !told {
        wrong.push(format!("it does not say why: {}", run.stderr));
    }
    let account: Option<Value> = run.stdout.lines().last().and_then(|line| serde_json::from_str(line).ok());
    if let Some(account) = account.as_ref().filter(|account| !closes(account)) {
        wrong.push(format!("the account does not close: {account}"));
    }
    let mut packets = 0;
    for name in names(directory.path()) {
        if name.ends_with(".sock") {
            wrong.push(format!("{name} is left"));
        } else {
            match count(&directory.path().join(&name), failed) {
                Ok(count) if name != "in.pcap" => packets += count,
                Ok(_) => {}
                Err(what) => wrong.push(format!("{name}: {what}; {}", run.stderr)),
            }
        }
    }
    let written = account.as_ref().and_then(|account| account["written"].as_u64());
    if case.files.len() == 1 && written.is_some_and(|written| packets < written) {
        wrong.push(format!("{written:?} packets written, {packets} there: {}", run.stderr));
    }
    wrong
}

/// Whether the sums of a capture's account, or of forwarding's, are right.
fn closes(account: &Value) -> bool {
    let of = |field: &str| account[field].as_u64();
    let sum = |fields: &[&str]| fields.iter().map(|field| of(field)).sum::<Option<u64>>();
    of("seen").is_some()
        && match of("forwarded") {
            None => {
                of("seen") == sum(&["filtered", "sampled_out", "counted", "captured", "lost", "errors"])
                    && of("captured") == sum(&["delivered", "queued", "discarded"])
            }
            Some(_) => of("seen") == sum(&["filtered", "forwarded", "lost", "in_flight"]),
        }
}

/// How many packets capinfos finds in a file. That of a run that failed may end in the middle of one, or be empty.
fn count(file: &Path, failed: bool) -> Result<u64, String> {
    let mut plain = file.to_owned();
    if file.extension().is_some_and(|extension| extension == "zst") {
        let output = tool("zstd", &["-dc"], file);
        if !output.status.success() && !failed {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        plain.set_extension("plain");
        fs::write(&plain, output.stdout).expect("room");
    }
    if failed && fs::metadata(&plain).expect("a file").len() == 0 {
        return Ok(0);
    }
    let output = tool("capinfos", &["-M", "-c"], &plain);
    let errors = String::from_utf8_lossy(&output.stderr);
    let cut = failed && errors.contains("cut short in the middle of a packet");
    if !cut && !output.status.success() {
        return Err(errors.into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let count = text.lines().find_map(|line| line.strip_prefix("Number of packets:")).unwrap_or_default();
    count.trim().parse().map_err(|_| format!("capinfos: {text}{errors}"))
}

fn tool(name: &str, args: &[&str], file: &Path) -> Output {
    Command::new(name).args(args).arg(file).output().expect("it is installed")
}
