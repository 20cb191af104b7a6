//! Outputs that cannot be created: each error names the output and says what to do.

use std::fs;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};

use rustix::io::{FdFlags, fcntl_setfd};

use super::super::broker::{FileBroker as _, Purpose};
use super::super::local_broker::LocalBroker;
use super::super::refusal::Refusal;
use super::*;

fn refused(path: &Path) -> (WriteError, String) {
    let error = Writer::create(path, &interfaces(), &options(Format::Pcapng)).unwrap_err();
    let message = error.to_string();
    assert!(message.contains(&*path.to_string_lossy()), "`{message}` names the path");
    (error, message)
}

#[test]
fn a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let (error, message) = refused(directory.path());
    assert!(matches!(error, WriteError::Directory { .. }));
    assert!(message.contains("/capture.pcapng"));
}

#[test]
fn a_missing_parent() {
    let directory = tempfile::tempdir().unwrap();
    let (error, message) = refused(&directory.path().join("a/b/c.pcapng"));
    assert!(matches!(error, WriteError::NoParent { .. }));
    assert!(message.ends_with("/a/b`"), "{message}");
}

#[test]
fn a_file_as_parent() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (error, message) = refused(&file.path().join("c.pcapng"));
    assert!(matches!(error, WriteError::Open { .. }));
    assert!(message.contains("Not a directory"));
}

/// Nobody, not even root, can create files in sysfs.
#[test]
fn an_unwritable_place() {
    let (error, message) = refused(Path::new("/sys/c.pcapng"));
    assert!(matches!(error, WriteError::NotPermitted { .. }), "{error:?}");
    assert!(message.contains("choose a directory"));
}

#[test]
fn root_a_read_only_file_system() {
    let Some(disk) = SmallDisk::new("64k", MountAttrFlags::MOUNT_ATTR_RDONLY) else { return };
    let (error, _) = refused(&disk.path("c.pcapng"));
    assert!(matches!(error, WriteError::ReadOnly { .. }), "{error:?}");
}

#[test]
fn several_link_types_in_a_pcap_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.pcap");
    let interfaces = [interface("veth0", 1), interface("tun0", 101)];
    let error =
        Writer::create(&path, &interfaces, &options(Format::Pcap { nanoseconds: false })).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("veth0 has 1, tun0 has 101"), "{message}");
    assert!(!path.exists(), "the file is not touched");
    Writer::create(&path, &interfaces, &options(Format::Pcapng)).unwrap();
}

#[test]
fn what_is_captured_is_for_its_owner_alone_unless_asked_otherwise() {
    let directory = tempfile::tempdir().unwrap();
    for (group_readable, mode) in [(false, 0o600), (true, 0o640)] {
        let path = directory.path().join(mode.to_string());
        let options = WriterOptions { group_readable, ..options(Format::Pcapng) };
        Writer::create(&path, &interfaces(), &options).unwrap();
        let mode_of = || fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode_of(), mode);
        // This includes existing files.
        for before in [0o644, 0o666, 0o640] {
            fs::set_permissions(&path, fs::Permissions::from_mode(before)).unwrap();
            let mut writer = Writer::create(&path, &interfaces(), &options).unwrap();
            assert_eq!((mode_of(), writer.warnings()), (mode, Vec::new()));
        }
        // Files that are not overwritten keep their mode.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let rotating = WriterOptions {
            rotation: Rotation { packets: Some(5), ..Rotation::default() },
            ..options.clone()
        };
        Writer::create(&path, &interfaces(), &rotating).unwrap();
        assert_eq!(mode_of(), 0o644);
        let _writes = Writer::create(&path, &interfaces(), &options).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        Writer::create(&path, &interfaces(), &options).unwrap_err();
        assert_eq!(mode_of(), 0o644);
    }
}

#[test]
fn what_is_open_already_is_written_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("open");
    fs::write(&path, "front").unwrap();
    let mut file = File::options().read(true).write(true).open(&path).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    let name = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    // Inheritable, like the descriptors that a program is started with.
    fcntl_setfd(&file, FdFlags::empty()).unwrap();
    let mut writer = Writer::create(&name, &interfaces(), &options(Format::Pcapng)).unwrap();
    put(&mut writer, &chunk(0, 0, 10)).unwrap();
    let (written, result) = writer.finish(&account());
    result.unwrap();
    let all = fs::read(&path).unwrap();
    assert_eq!((&all[..5], all.len() as u64), (&b"front"[..], 5 + written.bytes));
    assert_eq!(file.stream_position().unwrap(), all.len() as u64);
    let rotating = WriterOptions {
        rotation: Rotation { packets: Some(5), ..Rotation::default() },
        ..options(Format::Pcapng)
    };
    let error = Writer::create(&name, &interfaces(), &rotating).unwrap_err();
    assert!(matches!(error, WriteError::NoRotation { .. }), "{error}");
}

#[test]
fn root_that_others_may_read_a_file_of_theirs_is_told() {
    let Some(disk) = SmallDisk::new("1m", MountAttrFlags::empty()) else { return };
    fs::set_permissions(disk.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let path = disk.path("theirs");
    fs::write(&path, "").unwrap();
    chown(&path, Some(NOBODY), None).unwrap();
    for (mode, told) in [(0o644, true), (0o640, true), (0o600, false)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let mut writer = Writer::create(&path, &interfaces(), &options(Format::Pcapng)).unwrap();
        let warnings = writer.warnings();
        assert_eq!(warnings.len(), usize::from(told), "{mode:o}: {warnings:?}");
        let words = format!("it belongs to user {NOBODY} and keeps mode {mode:04o}");
        assert!(warnings.iter().all(|warning| warning.contains(&words)), "{warnings:?}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode);
    }
}

#[test]
fn root_what_somebody_else_has_put_there_is_refused() {
    let Some(disk) = SmallDisk::new("1m", MountAttrFlags::empty()) else { return };
    let (everybodys, goal) = (disk.path("everybodys"), disk.path("goal"));
    fs::set_permissions(disk.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(&everybodys).unwrap();
    fs::set_permissions(&everybodys, fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(&goal, "mine").unwrap();
    // Independent of fs.protected_symlinks and fs.protected_regular.
    let (link, file) = (everybodys.join("link"), everybodys.join("file"));
    symlink(&goal, &link).unwrap();
    lchown(&link, Some(NOBODY), None).unwrap();
    fs::write(&file, "").unwrap();
    chown(&file, Some(NOBODY), None).unwrap();
    for (path, what) in [(&link, "symbolic link"), (&file, "file")] {
        for rotation in [Rotation::default(), Rotation { packets: Some(5), ..Rotation::default() }] {
            let options = WriterOptions { rotation, ..options(Format::Pcapng) };
            let error = Writer::create(path, &interfaces(), &options).unwrap_err();
            assert!(matches!(error, WriteError::Foreign { owner: NOBODY, .. }), "{error}");
            assert!(error.to_string().contains(&format!("user {NOBODY} put a {what} there")), "{error}");
        }
    }
    assert_eq!((fs::read(&goal).unwrap(), len_of(&file)), (b"mine".to_vec(), 0));

    // Such a link is not followed inside a path either, for writing, deleting or `fsync` of the directory.
    let (way, inside) = (everybodys.join("way"), disk.path("inside"));
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("f"), "mine").unwrap();
    symlink("../inside", &way).unwrap();
    for (owner, refused) in [(NOBODY, true), (0, false)] {
        lchown(&way, Some(owner), None).unwrap();
        let path = way.join("f");
        let opened = LocalBroker::default().open(&path, Purpose::Any);
        let directory = LocalBroker::default().directory(&path);
        let removed = LocalBroker::default().remove(&path);
        assert_eq!((directory.is_err(), removed.is_err()), (refused, refused));
        match opened {
            Err(Refusal::Link { owner: NOBODY }) => assert!(refused),
            opened => assert!(!refused && !opened.unwrap().created),
        }
        assert_eq!(inside.join("f").exists(), refused);
    }

    // Our own link is followed, even to a new file; another user's file in a directory that is not world-writable is
    // fine.
    let (own, theirs) = (everybodys.join("own"), disk.path("theirs"));
    symlink("../new", &own).unwrap();
    fs::write(&theirs, "").unwrap();
    chown(&theirs, Some(NOBODY), None).unwrap();
    for path in [&own, &theirs] {
        Writer::create(path, &interfaces(), &options(Format::Pcapng)).unwrap();
    }
    assert!(len_of(&disk.path("new")) > 0 && len_of(&theirs) > 0);
}
