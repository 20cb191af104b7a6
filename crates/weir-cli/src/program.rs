//! Programs as the shell finds them, and how to name this one in a command to copy.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use weir::parts::command;

/// Where a program is searched without `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Returns the path of the program that would be executed as `name`; `None`: there is none.
pub(crate) fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(name.into()).filter(|path: &PathBuf| path.exists());
    }
    let path = env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let mut places = env::split_paths(&path).map(|directory| Path::new(".").join(directory).join(name));
    places.find(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())
}

/// Returns how the user can run this program: `weir` if the shell finds it, otherwise its path.
pub(crate) fn name() -> String {
    if is_found() { "weir".to_owned() } else { own_path() }
}

/// Returns the path of this program as a word for the shell.
pub(crate) fn path() -> String {
    if is_found() { "$(command -v weir)".to_owned() } else { own_path() }
}

fn is_found() -> bool {
    let found = find(OsStr::new("weir")).and_then(|path| fs::canonicalize(path).ok());
    found.is_some() && found == env::current_exe().ok()
}

fn own_path() -> String {
    env::current_exe().map_or_else(|_| "weir".to_owned(), |path| command::word(&path.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let shell = find(OsStr::new("sh")).expect("a shell");
        assert!(shell.ends_with("sh") && shell.is_absolute(), "{shell:?}");
        assert_eq!(find(OsStr::new("/bin/sh")), Some("/bin/sh".into()));
        assert_eq!(find(OsStr::new("no-such-program")), None);
        assert_eq!(find(OsStr::new("/no/such/program")), None);
    }
}
