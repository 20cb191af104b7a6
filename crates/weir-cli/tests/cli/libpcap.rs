//! `weir libpcap`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// What a program prints of the library's version.
const OURS: &str = concat!("libpcap version 1.10.3 (weir ", env!("CARGO_PKG_VERSION"), ")");

/// weir and its library in a directory of their own.
struct Place {
    directory: TempDir,
    weir: PathBuf,
}

impl Place {
    /// As in a build tree: both in one directory.
    fn built() -> Self {
        let place = Self::without_library("weir");
        link(&built_library(), &place.path("libweir_pcap.so"));
        place
    }

    fn without_library(weir: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        // Everybody may enter.
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).expect("it is ours");
        let weir = directory.path().join(weir);
        fs::create_dir_all(weir.parent().expect("a directory")).expect("a directory");
        link(Path::new(env!("CARGO_BIN_EXE_weir")), &weir);
        Self { directory, weir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn weir(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.weir);
        command.args(args).env_remove("LD_LIBRARY_PATH").env("LC_ALL", "C");
        command
    }
}

/// cargo builds it next to the tests.
fn built_library() -> PathBuf {
    let library = std::env::current_exe().expect("this program").with_file_name("libweir_pcap.so");
    assert!(library.exists(), "cargo has not built {}", library.display());
    library
}

/// A link, if both are in one file system: they are large.
fn link(from: &Path, to: &Path) {
    fs::hard_link(from, to).unwrap_or_else(|_| copy(from, to));
}

fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap_or_else(|error| panic!("{} to {}: {error}", from.display(), to.display()));
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    stdout(output)
}

/// Fails unless weir has failed with this status, and has said this.
fn failed(output: &Output, status: i32, parts: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}");
    for part in parts {
        assert!(text.contains(part), "should say `{part}`: {text}");
    }
}

#[test]
fn the_library_is_installed_under_its_names() {
    let place = Place::built();
    let lib = place.path("a b/lib");
    let install = |place: &Place| place.weir(&["libpcap"]).arg(&lib).output().expect("weir runs");
    assert_eq!(succeeded(&install(&place)), "");
    let mut there: Vec<_> =
        fs::read_dir(&lib).expect("a directory").map(|file| file.expect("a file").file_name()).collect();
    there.sort();
    assert_eq!(there, ["libpcap.pc", "libpcap.so", "libpcap.so.0.8", "libpcap.so.1", "libweir_pcap.so"]);
    let file = lib.join("libweir_pcap.so");
    assert!(fs::read(&file).expect("a file") == fs::read(built_library()).expect("a file"));
    // A program that has the old file mapped keeps it: the new one is another file.
    let (old, number) = (fs::File::open(&file).expect("a file"), file.metadata().expect("a file").ino());
    succeeded(&install(&place));
    assert_ne!(file.metadata().expect("a file").ino(), number);
    assert!(old.metadata().expect("a file").len() > 0);

    // Programs compiled with its pkg-config file use it, wherever it has been moved.
    let moved = place.path("moved here");
    fs::rename(place.path("a b/lib"), &moved).expect("both are ours");
    let source = place.path("version.c");
    let text =
        "#include <pcap.h>\n#include <stdio.h>\nint main(void) { return puts(pcap_lib_version()) < 0; }\n";
    fs::write(&source, text).expect("a file");
    let build =
        r#"eval cc -o version version.c $(pkg-config --cflags --libs 'libpcap >= 1.10') && exec ./version"#;
    let mut sh = Command::new("sh");
    sh.args(["-c", build]).current_dir(place.directory.path()).env_remove("LD_LIBRARY_PATH");
    let output = sh.env("PKG_CONFIG_PATH", &moved).output().expect("sh");
    assert_eq!(succeeded(&output), format!("{OURS}\n"));
}

#[test]
fn another_libpcap_stays() {
    let place = Place::built();
    let install = || place.weir(&["libpcap"]).arg(place.path("lib")).output().expect("weir runs");
    fs::create_dir(place.path("lib")).expect("a directory");
    let theirs = place.path("lib/libpcap.so.1");
    symlink("libpcap.so.1.10.3", &theirs).expect("a link");
    failed(&install(), 1, &["libpcap.so.1: another libpcap is there", "hint: choose a directory of its own"]);
    fs::remove_file(&theirs).expect("a file");
    fs::write(&theirs, "theirs").expect("a file");
    failed(&install(), 1, &["libpcap.so.1: another libpcap is there"]);
    assert_eq!(fs::read_dir(place.path("lib")).expect("a directory").count(), 1);
    fs::remove_file(&theirs).expect("a file");
    succeeded(&install());
    let mut nowhere = place.weir(&["libpcap", "/proc/no"]);
    failed(&nowhere.output().expect("weir runs"), 1, &["cannot write libpcap to /proc/no: "]);
}
