//! Writes through io_uring to real files.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
};
use weir_sys::uring::DiskRing;

const PIECE: usize = 64 * 1024;

/// A ring for a new, unnamed file; `None`, and a word about it, where this machine has no io_uring.
fn ring(depth: u16) -> Option<(DiskRing<Vec<u8>>, Arc<File>)> {
    let file = Arc::new(tempfile::tempfile().unwrap());
    match DiskRing::new(depth) {
        Ok(ring) => Some((ring, file)),
        Err(error) => {
            weir_skip::this_test(format!("io_uring: {error}"));
            None
        }
    }
}

fn piece(number: usize) -> Vec<u8> {
    vec![u8::try_from(number % 251).unwrap(); PIECE]
}

fn content(file: &File) -> Vec<u8> {
    fs::read(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap()
}

#[test]
fn pieces_land_at_their_offsets_and_come_back() {
    let Some((mut ring, file)) = ring(4) else { return };
    let mut back = Vec::new();
    for number in 0..64 {
        if ring.is_full() {
            back.extend(ring.completions(1).unwrap().map(|done| {
                assert_eq!(done.result.unwrap(), PIECE);
                (done.offset, done.buffer)
            }));
        }
        ring.write_at(&file, piece(number), (number * PIECE) as u64).unwrap();
    }
    back.extend(ring.completions(usize::MAX).unwrap().map(|done| (done.offset, done.buffer)));
    assert_eq!(ring.in_flight(), 0);

    back.sort();
    let expected: Vec<_> = (0..64).map(|number| ((number * PIECE) as u64, piece(number))).collect();
    assert!(back == expected, "each buffer comes back once, with its own offset");
    assert!(content(&file) == expected.iter().flat_map(|(_, bytes)| bytes).copied().collect::<Vec<_>>());
}

#[test]
fn a_full_ring_gives_the_buffer_back() {
    let Some((mut ring, file)) = ring(2) else { return };
    assert_eq!(ring.write_at(&file, vec![1], 0), Ok(()));
    assert_eq!(ring.write_at(&file, vec![2], 1), Ok(()));
    assert!(ring.is_full());
    assert_eq!(ring.write_at(&file, vec![3], 2), Err(vec![3]));
    assert_eq!(ring.completions(2).unwrap().count(), 2);
    assert_eq!(ring.write_at(&file, vec![3], 2), Ok(()));
}

#[test]
fn dropping_the_ring_waits_for_the_disk() {
    let Some((mut ring, file)) = ring(8) else { return };
    for number in 0..8 {
        ring.write_at(&file, piece(number), (number * PIECE) as u64).unwrap();
    }
    drop(ring);
    assert!(content(&file) == (0..8).flat_map(piece).collect::<Vec<_>>());
}

#[test]
fn every_buffer_is_dropped_once() {
    struct Counted(Vec<u8>, Arc<AtomicUsize>);
    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    let file = Arc::new(tempfile::tempfile().unwrap());
    let Ok(mut ring) = DiskRing::new(8) else { return weir_skip::this_test("no io_uring") };
    let drops = Arc::new(AtomicUsize::new(0));
    for number in 0..6 {
        assert!(ring.write_at(&file, Counted(piece(number), Arc::clone(&drops)), 0).is_ok());
    }
    ring.completions(2).unwrap().take(1).for_each(drop);
    assert_eq!(drops.load(Ordering::Relaxed), 1, "what was not taken waits");
    drop(ring);
    assert_eq!(drops.load(Ordering::Relaxed), 6);
}

#[test]
fn a_file_that_cannot_be_written_answers_with_its_error() {
    let file = Arc::new(File::open("/proc/self/exe").unwrap());
    let Ok(mut ring) = DiskRing::new(2) else { return weir_skip::this_test("no io_uring") };
    ring.write_at(&file, vec![1; 10], 0).unwrap();
    let done = ring.completions(1).unwrap().next().unwrap();
    assert_eq!(done.result.unwrap_err().raw_os_error(), Some(libc::EBADF));
    assert_eq!(done.buffer, [1; 10]);
}

#[test]
fn root_a_full_disk_writes_in_part_and_then_says_so() {
    // A file system of its own that no name leads to; it goes with its descriptor.
    let context = match fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC) {
        Ok(context) => context,
        Err(error) => return weir_skip::this_test(format!("mounting needs root: {error}")),
    };
    fsconfig_set_string(&context, "size", "96k").unwrap();
    fsconfig_create(&context).unwrap();
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty()).unwrap();
    let file = Arc::new(File::create(format!("/proc/self/fd/{}/full", mount.as_raw_fd())).unwrap());

    let Ok(mut ring) = DiskRing::new(4) else {
        return weir_skip::this_test("no io_uring");
    };
    for number in 0..3 {
        ring.write_at(&file, piece(number), (number * PIECE) as u64).unwrap();
    }
    let mut done: Vec<_> = ring.completions(3).unwrap().collect();
    done.sort_by_key(|done| done.offset);
    let (errors, written): (Vec<_>, Vec<_>) = done.iter().partition(|done| done.result.is_err());
    assert_eq!(written.iter().map(|done| *done.result.as_ref().unwrap()).sum::<usize>(), 96 * 1024);
    assert!(written.iter().any(|done| *done.result.as_ref().unwrap() == PIECE / 2), "one is written in part");
    for done in errors {
        assert_eq!(done.result.as_ref().unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    }
}
