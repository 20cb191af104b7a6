//! Tests of a confined process from the inside. Confinement cannot be undone, so each test runs in a child: this
//! program again, with its writable directory named in the environment.

use std::env;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use rustix::fs::{FileType, Mode, OFlags, SealFlags, fchmod, fcntl_add_seals, mknodat};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, netlink, send, socket_with};
use rustix::process::{
    Pid, Resource, Signal, getppid, getrlimit, kill_process, prlimit, setpriority_pgrp, setpriority_process,
    setrlimit,
};

use weir_lab::require_root;
use weir_sys::packet::Promiscuous;

use super::*;

const INSIDE: &str = "WEIR_TEST_CONFINED";

/// Runs the test `name` again, in a child.
fn in_a_child(name: &str, directory: &Path) {
    let mut child = Command::new(env::current_exe().expect("a program"));
    child.args(["--exact", &format!("confine::tests::{name}"), "--nocapture"]).env(INSIDE, directory);
    let output = child.stdin(Stdio::null()).output().expect("the child starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
}

fn unknown_call<T>(result: Result<T, impl Into<std::io::Error>>) {
    assert_eq!(result.map(drop).map_err(Into::into).unwrap_err().raw_os_error(), Some(libc::ENOSYS));
}

fn denied<T>(result: std::io::Result<T>) {
    assert_eq!(result.map(drop).unwrap_err().kind(), ErrorKind::PermissionDenied);
}

#[test]
fn a_confined_capture_does_its_work_and_no_more() {
    let Some(mine) = env::var_os(INSIDE).map(PathBuf::from) else {
        let (mine, other) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("another"));
        fs::write(other.path().join("secret"), "secret").expect("a file");
        fs::write(mine.path().join("other"), other.path().as_os_str().as_encoded_bytes()).expect("a file");
        in_a_child("a_confined_capture_does_its_work_and_no_more", mine.path());
        assert!(other.path().join("secret").exists());
        return;
    };
    let other = PathBuf::from(fs::read_to_string(mine.join("other")).expect("a file"));
    let (files, sockets) = UnixStream::pair().map(|pair| (File::open("/etc/passwd"), pair)).expect("a pair");
    let held = confine(&Needs::to_capture().write(&mine.join("out.pcapng"))).expect("confined");
    assert_eq!((held.no_new_privileges, held.system_calls.is_some()), (true, true), "{held}");

    // Allowed.
    fs::write(mine.join("new"), "1").expect("a file may be made");
    fs::rename(mine.join("new"), mine.join("old")).expect("and renamed");
    fs::write(mine.join("old"), "22").expect("and emptied and written");
    assert_eq!(fs::read(mine.join("old")).expect("and read"), b"22");
    fs::remove_file(mine.join("old")).expect("and removed");
    assert!(fs::read_dir(&mine).expect("and listed").count() >= 1);
    assert_eq!(thread::spawn(|| 7).join().expect("no panic"), 7);
    assert!(catch_unwind(|| panic!("a panic is told and caught")).is_err());
    fs::read_to_string("/proc/self/status").expect("of itself");
    assert!(!weir::link::links().expect("interfaces").is_empty());
    drop((files, sockets)); // What was open stays usable.

    // Denied.
    unknown_call(Command::new("/bin/true").spawn());
    unknown_call(TcpListener::bind("127.0.0.1:0"));
    unknown_call(UnixStream::pair());
    unknown_call(rustix::fs::chown(mine.join("other"), None, None));
    unknown_call(rustix::fs::mkdir(mine.join("made"), Mode::RWXU));
    if held.landlock == Level::None {
        assert!(!held.weaknesses.is_empty());
        return;
    }
    denied(File::open("/etc/passwd"));
    denied(File::open(other.join("secret")));
    denied(File::create(other.join("new")));
    denied(fs::remove_file(other.join("secret")));
    denied(fs::rename(mine.join("other"), other.join("moved")).map_err(|error| {
        // A rename to another directory fails with EXDEV, so that the caller can copy instead, which is denied.
        if error.kind() == ErrorKind::CrossesDevices { ErrorKind::PermissionDenied.into() } else { error }
    }));
}

/// In a child that runs the test `name`, a process with these needs is denied anything beyond its own files.
fn reaches_nobody_else(name: &str, needs: fn() -> Needs) {
    let Some(mine) = env::var_os(INSIDE).map(PathBuf::from) else {
        let mine = tempfile::tempdir().expect("a directory");
        in_a_child(name, mine.path());
        return;
    };
    let file = File::create(mine.join("file")).expect("a file");
    let (here, there) = (UnixDatagram::unbound().expect("a socket"), mine.join("there"));
    let _heard = UnixDatagram::bind(&there).expect("a name");
    here.send_to(b"before", &there).expect("it hears");
    let parent = getppid().expect("a parent");
    let limit = || getrlimit(Resource::Core);
    confine(&needs().write(&mine.join("out"))).expect("confined");
    // Files that would lend their owner's rights to others.
    for mode in [0o4755, 0o2755, 0o1755, 0o4000] {
        let mode = Mode::from_raw_mode(mode);
        unknown_call(rustix::fs::open(mine.join("other"), OFlags::CREATE | OFlags::WRONLY, mode));
    }
    assert!(!mine.join("other").exists());
    unknown_call(fchmod(&file, Mode::from_raw_mode(0o4755)));
    unknown_call(fchmod(&file, Mode::from_raw_mode(0o644)));
    unknown_call(fs::set_permissions(mine.join("file"), fs::Permissions::from_mode(0o4755)));
    // Other processes and their limits are out of reach; its own limits are not.
    unknown_call(kill_process(parent, Signal::CONT));
    for other in [parent, Pid::INIT] {
        unknown_call(prlimit(Some(other), Resource::Core, limit()));
    }
    setrlimit(Resource::Core, limit()).expect("of itself");
    unknown_call(setpriority_process(Some(parent), 19));
    unknown_call(setpriority_pgrp(None, 19));
    // Operations on a descriptor that affect others.
    unknown_call(fcntl_add_seals(&file, SealFlags::WRITE));
    // Netlink returns information about links, and nothing else.
    let ask = |protocol| socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol);
    for protocol in [netlink::GENERIC, netlink::NETFILTER, netlink::XFRM, netlink::AUDIT] {
        unknown_call(ask(Some(protocol)));
    }
    // Sending to arbitrary addresses, through open or new sockets; and rings that do more than write.
    unknown_call(here.send_to(b"after", &there));
    unknown_call(UdpSocket::bind("127.0.0.1:0"));
    unknown_call(weir_sys::uring::available());
}

#[test]
fn who_captures_reaches_nobody_else() {
    reaches_nobody_else("who_captures_reaches_nobody_else", Needs::to_capture);
}

#[test]
fn who_opens_files_reaches_nobody_else() {
    reaches_nobody_else("who_opens_files_reaches_nobody_else", Needs::to_keep);
}

#[test]
fn who_makes_programs_reaches_nobody_else() {
    reaches_nobody_else("who_makes_programs_reaches_nobody_else", Needs::to_make);
}

#[test]
fn who_connects_for_others_reaches_nobody_else() {
    reaches_nobody_else("who_connects_for_others_reaches_nobody_else", || Needs::to_connect(vec![4739]));
}

#[test]
fn who_connects_for_others_reaches_only_its_ports() {
    let Some(mine) = env::var_os(INSIDE).map(PathBuf::from) else {
        let mine = tempfile::tempdir().expect("a directory");
        in_a_child("who_connects_for_others_reaches_only_its_ports", mine.path());
        return;
    };
    let [known, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let [known, other] = [&known, &other].map(|listener| listener.local_addr().expect("an address"));
    let held = confine(&Needs::to_connect(vec![known.port()])).expect("confined");
    TcpStream::connect(known).expect("its port");
    unknown_call(TcpListener::bind("127.0.0.1:0"));
    // Older kernels know no ports (Linux 6.7).
    if held.landlock == Level::Full {
        denied(TcpStream::connect(other));
    }
    if held.landlock != Level::None {
        denied(File::create(mine.join("new")));
    }
}

#[test]
fn root_who_captures_has_no_other_interface_promiscuous() {
    const NAME: &str = "root_who_captures_has_no_other_interface_promiscuous";
    const LOOPBACK: u32 = 1;
    let Some(mine) = env::var_os(INSIDE).map(PathBuf::from) else {
        if require_root(NAME) {
            in_a_child(NAME, tempfile::tempdir().expect("a directory").path());
        }
        return;
    };
    let held = Promiscuous::new(LOOPBACK).expect("root may");
    held.and(LOOPBACK).expect("root may, once more");
    confine(&Needs::to_capture().write(&mine.join("out"))).expect("confined");
    unknown_call(held.and(LOOPBACK).map_err(|error| error.source));
}

#[test]
fn who_reads_files_has_no_socket() {
    let Some(mine) = env::var_os(INSIDE).map(PathBuf::from) else {
        let mine = tempfile::tempdir().expect("a directory");
        fs::write(mine.path().join("trace"), "packets").expect("a file");
        in_a_child("who_reads_files_has_no_socket", mine.path());
        return;
    };
    let (here, _there) = UnixDatagram::pair().expect("a pair");
    let held = confine(&Needs::to_read(&[mine.join("trace")], None)).expect("confined");
    assert_eq!(fs::read(mine.join("trace")).expect("the file named"), b"packets");
    fs::read("/proc/sys/kernel/osrelease").expect("what the C library may read at any time");
    unknown_call(UdpSocket::bind("127.0.0.1:0"));
    unknown_call(send(&here, b"to whom it is connected", SendFlags::empty()));
    assert!(weir::link::links().is_err());
    if held.landlock != Level::None {
        denied(File::open("/etc/passwd"));
        denied(File::create(mine.join("new")));
        denied(File::options().write(true).open(mine.join("trace")));
    }
}

#[test]
fn who_sends_files_has_the_sockets_that_are_open() {
    let Some(mine) = env::var_os(INSIDE).map(PathBuf::from) else {
        let mine = tempfile::tempdir().expect("a directory");
        in_a_child("who_sends_files_has_the_sockets_that_are_open", mine.path());
        return;
    };
    let (here, there) = UnixDatagram::pair().expect("a pair");
    let named = mine.join("named");
    let _heard = UnixDatagram::bind(&named).expect("a name");
    confine(&Needs::to_read(&[], None).send()).expect("confined");
    send(&here, b"packet", SendFlags::empty()).expect("to whom it is connected");
    let mut packet = [0; 6];
    there.recv(&mut packet).expect("it is there");
    assert_eq!(&packet, b"packet");
    unknown_call(here.send_to(b"packet", &named));
    unknown_call(UnixDatagram::unbound());
    unknown_call(UdpSocket::bind("127.0.0.1:0"));
}

#[test]
fn code_is_made_until_there_is_all() {
    let Some(mine) = env::var_os(INSIDE).map(PathBuf::from) else {
        let mine = tempfile::tempdir().expect("a directory");
        in_a_child("code_is_made_until_there_is_all", mine.path());
        return;
    };
    let compiled = weir::Filter::new("tcp port 80").compile_for_file(1, false).expect("a filter");
    let native = || weir::filter::Matcher::new(&compiled).why_interpreted().is_none();
    let held = confine(&Needs::to_read(&[mine], None).make_code()).expect("confined");
    unknown_call(UdpSocket::bind("127.0.0.1:0"));
    assert!(native());
    end_of_code(Some(&held)).expect("no more code");
    assert!(!native());
    // Memory that is not executable is still available.
    assert_eq!(vec![1_u8; 64 << 20].iter().map(|&byte| usize::from(byte)).sum::<usize>(), 64 << 20);
}

#[test]
fn where_files_are_made_is_told() {
    let places = |path: &str| Needs::to_capture().write(Path::new(path)).files.written;
    assert_eq!(places("a.pcapng"), [PathBuf::from(".")]);
    assert_eq!(places("/var/tmp/a.pcapng"), [PathBuf::from("/var/tmp")]);
    assert_eq!(places("/dev/null"), [PathBuf::from("/dev/null")]);
    assert!(places("-").is_empty());
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    assert_eq!(places(pipe.to_str().expect("UTF-8")), [pipe]);
}

#[test]
fn threads_that_keep_more_capabilities_are_counted() {
    assert_eq!(privileged_threads(Capabilities::all()), 0);
    let held = privilege::effective().expect("the kernel tells");
    assert_eq!(privileged_threads(Capabilities::empty()) > 0, !held.is_empty());
}

/// A process that runs other programs keeps the capabilities that it needs, of those that it has.
#[test]
fn root_who_runs_programs_keeps_what_it_needs() {
    const NAME: &str = "root_who_runs_programs_keeps_what_it_needs";
    if env::var_os(INSIDE).is_none() {
        if require_root(NAME) {
            in_a_child(NAME, Path::new("/"));
        }
        return;
    }
    let loading = Capabilities::BPF | Capabilities::PERFMON | Capabilities::NET_ADMIN;
    for (needs, wanted) in [(Needs::to_make(), loading), (Needs::to_capture(), Capabilities::empty())] {
        let expected = wanted & privilege::effective().expect("the kernel tells");
        assert_eq!(for_programs(&needs, None).expect("no more than that"), expected);
        assert_eq!(privilege::effective().expect("the kernel tells"), expected);
    }
    assert!(privilege::effective().expect("the kernel tells").is_empty());
}

#[test]
fn a_confinement_says_what_is_left_and_what_is_weak() {
    let mut held = Confinement {
        capabilities: vec![],
        no_new_privileges: true,
        user: None,
        landlock: Level::None,
        written: vec![],
        system_calls: None,
        weaknesses: vec![],
    };
    assert_eq!(held.to_string(), "confined: no capabilities, no new privileges");
    held.landlock = Level::Full;
    assert_eq!(held.to_string(), "confined: no capabilities, no new privileges; writes no files");
    held.capabilities = vec!["CAP_BPF", "CAP_PERFMON"];
    held.written = vec!["/var/tmp".into(), "/srv".into()];
    held.user = Some("nobody".to_owned());
    held.system_calls = Some(70);
    held.weaknesses = vec!["one".to_owned(), "two".to_owned()];
    assert_eq!(
        held.to_string(),
        "confined: no capabilities except CAP_BPF, CAP_PERFMON, no new privileges; user nobody; \
         writes only in /var/tmp and /srv; 70 system calls; one; two"
    );
}
