//! A program with more privileges than its user captures as on libpcap, whatever the user names.

mod programs;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use programs::{in_a_network, library};
use weir_lab::root_test;

#[root_test]
fn root_users_of_privileged_programs_choose_no_source() {
    // cargo's directories may be private, and file systems without privileges.
    let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let open = |mode| Permissions::from_mode(mode);
    fs::set_permissions(&directory, open(0o755)).expect("its mode");
    let path = compiled(directory.path());
    let secret = directory.path().join("secret");
    fs::create_dir(&secret).expect("a directory");
    fs::set_permissions(&secret, open(0o700)).expect("its mode");
    fs::write(secret.join("root.pcap"), savefile()).expect("a file");
    let files = [format!("file://{}/root.pcap", secret.display()), format!("file://{}/", secret.display())];
    let run = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&path);
        command.env("WEIR_SOURCE", "xdp").env("WEIR_MODE", "exclusive");
        command.args(["xdp!:d1", "xdp:d1", "tc:d1", "d1@0", "d1", "--", "rpcap://xdp!:d1"]).args(&files);
        let output = in_a_network(&mut command);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{}: {errors}", output.status);
        String::from_utf8(output.stdout).expect("text")
    };
    let refused = |name: &str, shown: &str| {
        let why = format!("{name}: cannot capture on {name}: this program has more privileges than its user");
        assert!(shown.contains(&why), "no {why}: {shown}");
    };
    for set in ["setuid", "cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon,cap_dac_override+ep"] {
        if set == "setuid" {
            fs::set_permissions(&path, open(0o4755)).expect("its mode");
        } else {
            fs::set_permissions(&path, open(0o755)).expect("its mode");
            let status = Command::new("setcap").arg(set).arg(&path).status().expect("setcap");
            assert!(status.success());
        }
        let shown = run();
        for name in ["xdp!:d1", "xdp:d1", "tc:d1", "d1@0"] {
            refused(name, &shown);
        }
        let d1 = "\nd1: opened\n  set: cannot open secret/root.pcap: this program has more privileges";
        assert!(shown.contains(d1), "{set}: {shown}");
        assert!(shown.contains("rpcap://xdp!:d1: xdp!:d1: cannot capture on xdp!:d1"), "{set}: {shown}");
        for file in &files {
            let name = &file["file://".len()..];
            let why = format!("cannot open {name}: this program has more privileges than its user");
            assert!(shown.contains(&format!("{file}: {why}")), "{set}: {shown}");
            assert!(shown.contains(&format!("  listed: {why}")), "{set}: {shown}");
        }
    }
}

/// Compiles the program, which finds our library in this directory without the environment.
fn compiled(directory: &Path) -> PathBuf {
    fs::copy(library(), directory.join("libpcap.so.0.8")).expect("a copy");
    symlink("libpcap.so.0.8", directory.join("libpcap.so")).expect("a link");
    let (path, here) = (directory.join("program"), Path::new(env!("CARGO_MANIFEST_DIR")));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&path);
    cc.arg("-I").arg(here.join("include")).arg(here.join("tests/c/privileged.c"));
    let linked = format!("-Wl,-rpath,{}", directory.display());
    let output =
        cc.arg("-L").arg(directory).arg(linked).arg("-lpcap").output().expect("a compiler for C (cc)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

/// A file without packets.
fn savefile() -> Vec<u8> {
    let header: [u32; 6] = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 262_144, 1];
    header.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
