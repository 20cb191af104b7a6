//! Whether the loader lets the program to run have another library.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, getxattr, statvfs};
use rustix::process::{getgid, getuid};

/// Interpreters that the kernel follows: a script's may be a script.
const SCRIPTS: usize = 5;
/// Most that the kernel reads of the line that names an interpreter.
const LINE: u64 = 255;

/// Returns why the loader ignores `LD_LIBRARY_PATH` for a program: executing it would give this process privileges that
/// it lacks.
pub(super) fn raises_privileges(program: &Path) -> Option<&'static str> {
    let mut program = program.to_owned();
    for _ in 0..SCRIPTS {
        let Some(interpreter) = interpreter(&program) else { break };
        program = interpreter;
    }
    let file = program.metadata().ok()?;
    let mount = statvfs(&program).ok()?;
    let without =
        mount.f_flag.contains(StatVfsMountFlags::NOSUID) || rustix::thread::no_new_privs().unwrap_or(false);
    let has_capabilities = getxattr(&program, "security.capability", &mut [0; 64]).is_ok();
    reason(without, (file.mode(), file.uid(), file.gid()), has_capabilities)
}

fn reason(
    without: bool,
    (mode, owner, group): (u32, u32, u32),
    has_capabilities: bool,
) -> Option<&'static str> {
    let user = getuid();
    if without {
        None
    } else if mode & 0o4000 != 0 && owner != user.as_raw() {
        Some("is setuid")
    } else if mode & 0o2010 == 0o2010 && group != getgid().as_raw() {
        Some("is setgid")
    } else if has_capabilities && !user.is_root() {
        Some("has file capabilities")
    } else {
        None
    }
}

/// Returns the interpreter of a script.
fn interpreter(program: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    BufReader::new(File::open(program).ok()?.take(LINE)).read_until(b'\n', &mut line).ok()?;
    let words = line.strip_prefix(b"#!")?.trim_ascii();
    let word = words.split(u8::is_ascii_whitespace).next()?;
    Some(OsString::from_vec(word.to_vec()).into()).filter(|path: &PathBuf| !path.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    #[test]
    fn scripts_have_the_privileges_of_their_interpreters() {
        let directory = tempfile::tempdir().expect("a directory");
        let script = directory.path().join("script");
        for (text, expected) in [
            ("#!/bin/sh\n", Some("/bin/sh")),
            ("#! /usr/bin/env python3\n", Some("/usr/bin/env")),
            ("#!\n", None),
        ] {
            fs::write(&script, text).expect("a file");
            assert_eq!(interpreter(&script), expected.map(PathBuf::from), "{text}");
        }
        assert_eq!(interpreter(&env::current_exe().expect("this program")), None);
    }

    #[test]
    fn privileges_that_are_there_already_do_not_count() {
        let (user, group) = (getuid().as_raw(), getgid().as_raw());
        assert_eq!(reason(false, (0o4755, user, group), false), None);
        assert_eq!(reason(false, (0o4755, user + 1, group), false), Some("is setuid"));
        assert_eq!(reason(true, (0o4755, user + 1, group), true), None);
        assert_eq!(reason(false, (0o2755, user, group), false), None);
        assert_eq!(reason(false, (0o2755, user, group + 1), false), Some("is setgid"));
        // Without the group's permission to execute, the bit means something else.
        assert_eq!(reason(false, (0o2745, user, group + 1), false), None);
        let root = getuid().is_root();
        assert_eq!(reason(false, (0o755, user, group), true), (!root).then_some("has file capabilities"));
    }
}
