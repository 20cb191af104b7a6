//! Complete files, checked with other programs, and failures to write them.

mod again;
mod compression;
mod failures;
mod gather;
mod judges;
mod outages;
mod refusals;
mod rest;
mod rotation;
mod who;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
};
use weir_savefile::Notes;
use weir_savefile::record::{INBOUND, OUTBOUND, RecordHeader, encode};

use super::write_request::Content;
use super::*;
use crate::{InterfaceStats, ModeKind, NicCounters, PacketCounters, QueueStats, SourceKind, Strays};

/// Another user: `nobody` on Debian.
const NOBODY: u32 = 65_534;

/// A test packet, with the fields that other programs show.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Packet {
    interface: u32,
    timestamp: u64,
    original_len: u32,
    data: Vec<u8>,
}

/// The bytes 0 to 255, repeated; copied because unoptimized tests with many packets are slow.
static COUNTING: [u8; 2048] = {
    let mut bytes = [0; 2048];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = at.to_le_bytes()[0];
        at += 1;
    }
    bytes
};

/// Returns the `n`th packet: Ethernet with an experimental type, 60 to 1514 bytes, even or odd, with known contents.
/// Every tenth is cut by the snap length.
fn packet(interface: u32, n: u32) -> Packet {
    let len = 60 + (n * 37) % 1455;
    let mut data = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5];
    data.extend(n.to_be_bytes());
    let from = (n as usize + 18) % 256;
    data.extend_from_slice(&COUNTING[from..from + len as usize - 18]);
    Packet {
        interface,
        timestamp: 1_700_000_000_000_000_000 + u64::from(n) * 1_000_003_457,
        original_len: if n % 10 == 3 { len + 100 } else { len },
        data,
    }
}

impl Packet {
    /// Returns the packet for writing it on its own.
    fn whole(&self) -> crate::Packet<'_> {
        crate::Packet {
            data: &self.data,
            timestamp: self.timestamp,
            original_len: self.original_len,
            interface: self.interface,
            queue: 0,
            direction: None,
            lost_before: 0,
            comment: None,
            notes: Notes::default(),
        }
    }
}

/// Encodes `packets` as a run of records, some with options.
fn records(packets: &[Packet]) -> Vec<u8> {
    let mut run = vec![0; packets.len() * 1600];
    let mut at = 0;
    for packet in packets {
        let n = packet.data.len();
        let header = RecordHeader {
            interface: packet.interface,
            timestamp: packet.timestamp,
            original_len: packet.original_len,
            flags: (n % 2 == 0).then_some(if n % 4 == 0 { INBOUND } else { OUTBOUND }),
            dropcount: (n % 7 == 0).then_some(n as u64),
            queue: (n % 3 == 0).then_some(1),
        };
        at += encode(&mut run[at..], &header, &[&packet.data]).unwrap();
    }
    run.truncate(at);
    run
}

/// Returns the losses that the records of `packets` tell of.
fn told(packets: &[Packet]) -> u64 {
    Data::Bytes(records(packets)).lost()
}

/// Creates what the tests write as one chunk.
fn chunk(interface: u32, first: u32, count: u32) -> Vec<Packet> {
    (first..first + count).map(|n| packet(interface, n)).collect()
}

fn put(writer: &mut Writer, packets: &[Packet]) -> Result<(), WriteError> {
    let interface = packets[0].interface;
    let content = Content::of_queue(interface, 7, packets.len() as u64);
    writer.write_records(Data::Bytes(records(packets)), content)
}

fn interface(name: &str, link_type: u16) -> FileInterface {
    FileInterface {
        link_type,
        snap_len: 262_144,
        name: Some(name.to_owned()),
        mac: Some([2, 0, 0, 0, 0, 1]),
        speed_bits: Some(10_000_000_000),
        ..FileInterface::default()
    }
}

fn interfaces() -> [FileInterface; 2] {
    [interface("veth0", 1), interface("veth1", 1)]
}

fn options(format: Format) -> WriterOptions {
    WriterOptions {
        format,
        comment: Some("a test".to_owned()),
        user_application: "weir tests".to_owned(),
        ..WriterOptions::default()
    }
}

/// Ten packets seen, of which the filter rejected one and two were lost; another was lost on the card.
fn account() -> CaptureStats {
    let counters = PacketCounters {
        seen: 10,
        filtered: Some(1),
        captured: 7,
        lost: 2,
        delivered: 7,
        ..PacketCounters::default()
    };
    let interfaces = [0, 1].map(|id| InterfaceStats {
        id,
        name: format!("veth{id}"),
        source: SourceKind::Xdp,
        mode: ModeKind::Pass,
        queues: vec![QueueStats { queue: 7, counters, ..QueueStats::default() }],
        strays: Strays::default(),
        tag_unknown: 0,
        sent_unseen: 0,
        memory: 0,
        nic: Some(NicCounters { missed: 1, fifo_errors: 0, dropped: 7 }),
    });
    CaptureStats { elapsed: Duration::from_secs(5), interfaces: interfaces.into(), ..CaptureStats::default() }
}

/// A private tmpfs that is not mounted anywhere, and that disappears with its descriptor.
struct SmallDisk(OwnedFd);

impl SmallDisk {
    /// `None`, with a message, without root.
    fn new(size: &str, attributes: MountAttrFlags) -> Option<Self> {
        Self::of(&[("size", size)], attributes)
    }

    /// `limits`: options of tmpfs.
    fn of(limits: &[(&str, &str)], attributes: MountAttrFlags) -> Option<Self> {
        let context = match fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC) {
            Ok(context) => context,
            Err(error) => {
                weir_skip::this_test(format_args!("mounting needs root: {error}"));
                return None;
            }
        };
        for &(option, limit) in limits {
            fsconfig_set_string(&context, option, limit).unwrap();
        }
        fsconfig_create(&context).unwrap();
        Some(Self(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).unwrap()))
    }

    /// Returns a path that works in other processes, too.
    fn path(&self, name: &str) -> PathBuf {
        format!("/proc/{}/fd/{}/{name}", std::process::id(), self.0.as_raw_fd()).into()
    }
}

/// Returns a path that opens the file or pipe behind a descriptor.
fn path_of(file: &impl std::os::fd::AsRawFd) -> PathBuf {
    Path::new("/proc/self/fd").join(file.as_raw_fd().to_string())
}

fn len_of(path: &Path) -> u64 {
    File::open(path).unwrap().metadata().unwrap().len()
}
