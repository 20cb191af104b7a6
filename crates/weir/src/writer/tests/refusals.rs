//! Outputs that cannot be made, each with an error that names it and says what to do.

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

/// Nobody, not even root, makes files in sysfs.
#[test]
fn an_unwritable_place() {
    let (error, message) = refused(Path::new("/sys/c.pcapng"));
    assert!(matches!(error, WriteError::NotPermitted { .. }), "{error:?}");
    assert!(message.contains("choose a place"));
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
