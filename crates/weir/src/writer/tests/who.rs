//! Lives of sockets in files: each file has what its reader needs, whatever was lost or is elsewhere.

use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;

use weir_packet::Endpoint;
use weir_savefile::pcapng::{WHO, WhoBlock};
use weir_who::{Cause, News, Sighting, SocketKind, decode};

use super::judges::output;
use super::*;
use crate::reader::{Item, Reader};

const BOOT: [u8; 16] = *b"0123456789abcdef";

fn news(socket: u64) -> News {
    let local = Endpoint { address: Ipv4Addr::LOCALHOST.into(), port: 80 };
    News::Sighting(Sighting {
        at: socket,
        socket,
        namespace: 1,
        kind: SocketKind::Stream,
        protocol: 6,
        local,
        remote: None,
        cause: Cause::Created,
        process: None,
    })
}

/// Returns the numbers of the sockets that a file tells of before its first packet, and behind it.
fn sockets(path: &Path) -> [Vec<u64>; 2] {
    let (mut reader, mut found, mut begun) = (Reader::open(path).unwrap(), [Vec::new(), Vec::new()], false);
    while let Some(item) = reader.next().unwrap() {
        match item {
            Item::Packet(_) => begun = true,
            Item::Block { kind: WHO, body } => {
                let block = WhoBlock::read(body).unwrap();
                assert_eq!(block.boot, BOOT);
                assert!(block.news.len() <= 1 << 20, "other programs refuse long blocks");
                for news in decode(block.news).unwrap() {
                    let News::Sighting(sighting) = news else { panic!("{news:?}") };
                    found[usize::from(begun)].push(sighting.socket);
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn each_file_begins_with_all_that_came_before_and_is_no_smaller_for_it() {
    let directory = tempfile::tempdir().unwrap();
    for compression in [Compression::None, Compression::Gzip] {
        let rotation = Rotation { size: Some(5_000), ..Rotation::default() };
        let options = WriterOptions { rotation, compression, ..options(Format::Pcapng) };
        let base = directory.path().join(format!("{compression:?}"));
        let mut writer = Writer::create(&base, &interfaces(), &options).unwrap();
        // More than a block, and far more than a file.
        let many: Vec<News> = (0..40_000).map(news).collect();
        writer.who(BOOT, &many).unwrap();
        let packets = chunk(0, 0, 12);
        for (number, some) in packets.chunks(3).enumerate() {
            put(&mut writer, some).unwrap();
            writer.who(BOOT, &[news(50_000 + number as u64)]).unwrap();
        }
        let files = writer.files();
        writer.finish(&account()).1.unwrap();
        assert_eq!(
            files.count,
            2,
            "{} bytes in all",
            packets.iter().map(|packet| packet.data.len()).sum::<usize>()
        );
        let [before, behind] = [&files.first, &files.last].map(|path| sockets(path));
        assert_eq!(before[0], (0..40_000).collect::<Vec<_>>());
        let told = before[1].len() as u64;
        assert_eq!(before[1], (50_000..50_000 + told).collect::<Vec<_>>());
        // What was told when no file was open is at its beginning, once.
        let known = behind[0].len() as u64 - 40_000;
        assert!(known >= told && known <= told + 1, "{known} {told}");
        assert_eq!(behind[1], (50_000 + known..50_004).collect::<Vec<_>>());
        if let Some(text) = output("capinfos", &["-M", "-c"], &files.last) {
            assert!(text.contains("Number of packets:"), "{text}");
        }
    }
}

#[test]
fn pcap_has_no_room_and_a_file_begun_again_forgets() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let pcap = options(Format::Pcap { nanoseconds: true });
    let mut writer = Writer::create(&path, &interfaces(), &pcap).unwrap();
    writer.who(BOOT, &[news(1)]).unwrap();
    put(&mut writer, &chunk(0, 0, 3)).unwrap();
    writer.finish(&account()).1.unwrap();
    assert_eq!(output("capinfos", &["-M", "-c"], &path).map(|text| text.contains(" 3\n")), Some(true));
    let mut writer = Writer::create(&path, &interfaces(), &options(Format::Pcapng)).unwrap();
    writer.who(BOOT, &[news(1)]).unwrap();
    assert!(writer.begin_again(&interfaces()).unwrap());
    writer.who(BOOT, &[news(2)]).unwrap();
    writer.finish(&account()).1.unwrap();
    assert_eq!(sockets(&path), [vec![2], vec![]]);
}

#[test]
fn root_what_a_full_disk_has_swallowed_is_told_once_there_is_room() {
    let Some(disk) = SmallDisk::new("1m", MountAttrFlags::empty()) else { return };
    let path = disk.path("f");
    let options = WriterOptions { keep_going: true, ..options(Format::Pcapng) };
    for ends in [false, true] {
        let mut writer = Writer::create(&path, &interfaces(), &options).unwrap();
        writer.outages.pause = Duration::ZERO;
        writer.set_stats(&account());
        writer.who(BOOT, &[news(1)]).unwrap();
        put(&mut writer, &chunk(0, 0, 50)).unwrap();
        writer.flush().unwrap();
        let ballast = disk.path("ballast");
        let _full = File::create(&ballast).unwrap().write_all(&vec![0; 2 << 20]);
        let mut number = 50;
        while writer.written().lost.is_empty() {
            writer.who(BOOT, &[news(u64::from(number))]).unwrap();
            put(&mut writer, &chunk(0, number, 50)).unwrap();
            number += 50;
        }
        writer.who(BOOT, &[news(2)]).unwrap();
        fs::remove_file(&ballast).unwrap();
        put(&mut writer, &chunk(0, number, 50)).unwrap();
        if !ends {
            writer.who(BOOT, &[news(3)]).unwrap();
        }
        writer.close(&account()).unwrap();
        let [before, behind] = sockets(&path);
        assert_eq!(before, [1]);
        let all: Vec<u64> =
            (1..).take(3 - usize::from(ends)).chain((50..number).step_by(50).map(u64::from)).collect();
        assert!(behind.ends_with(&all), "{ends}: {behind:?}");
        fs::remove_file(&path).unwrap();
    }
}
