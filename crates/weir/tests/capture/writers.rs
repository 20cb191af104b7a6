//! One writer per queue, whatever the driver does: several threads write to a tap interface, and each runs the program.

use std::collections::HashMap;
use std::process::Command;
use std::thread;
use std::time::Duration;

use weir::writer::{Writer, WriterOptions};
use weir::{Chunk, FileInterface, Mode, SourceChoice};
use weir_sys::netns::NetNs;
use weir_sys::tap::Tap;

use crate::assert_closed;
use crate::common::{self, drain};

/// Experiments (IEEE Std 802 - Local Experimental EtherType 1), from a thread, with a number.
fn frame(thread: u8, number: u32) -> Vec<u8> {
    let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, thread, 0x88, 0xb5];
    frame.extend(number.to_be_bytes());
    frame.extend((0..40 + number % 900).map(|at| at.to_le_bytes()[0]));
    frame
}

each_way!(many_writers_of_a_tap_make_one_whole_file:
    root_xdp(Xdp, Pass),
    root_xdp_exclusive(Xdp, Exclusive),
);

fn many_writers_of_a_tap_make_one_whole_file(source: SourceChoice, mode: Mode) {
    const THREADS: u8 = 4;
    const EACH: u32 = 5_000;
    const ALL: u64 = THREADS as u64 * EACH as u64;
    NetNs::new().expect("a namespace").run(|| {
        let tap = Tap::create("tap0").expect("a tap interface");
        // A processor has no more of them; they have 508 bytes on average.
        let builder = common::with_room_for(ALL, 520).interface("tap0").source(source).mode(mode);
        let mut capture = builder.open().expect("it opens");
        let interface = &capture.interfaces()[0];
        assert!(interface.detail.contains("per-CPU"), "{}", interface.detail);

        let file = tempfile::NamedTempFile::new().expect("a file");
        let files: Vec<_> = capture.interfaces().iter().map(FileInterface::from).collect();
        let mut writer = Writer::create(file.path(), &files, &WriterOptions::default()).expect("a file");
        let mut taken: HashMap<(u8, u32), u32> = HashMap::new();
        let mut note = |chunk: &Chunk| {
            for packet in chunk.packets().filter(|packet| packet.data[12..14] == [0x88, 0xb5]) {
                let number = u32::from_be_bytes(packet.data[14..18].try_into().expect("four bytes"));
                assert_eq!(packet.data, frame(packet.data[11], number));
                *taken.entry((packet.data[11], number)).or_default() += 1;
            }
        };
        thread::scope(|scope| {
            let writers = (0..THREADS).map(|thread| {
                let tap = &tap;
                scope.spawn(move || (0..EACH).for_each(|n| tap.receive(&frame(thread, n)).expect("it is up")))
            });
            let writers: Vec<_> = writers.collect();
            while !writers.iter().all(|writer| writer.is_finished()) {
                if let Some(chunk) = capture.next(Duration::from_millis(10)).expect("it goes on").taken() {
                    note(&chunk);
                    writer.write(chunk).expect("it is written");
                }
            }
        });
        drain(&mut capture, |chunk| {
            note(&chunk);
            writer.write(chunk).expect("it is written");
        });
        // Chunks go home when they are written.
        writer.flush().expect("it is written");
        let account = capture.stats().expect("an account");
        assert_closed(&account);
        let total = account.total();
        assert!(taken.values().all(|&times| times == 1), "a frame came twice");
        assert!(total.seen >= ALL && total.errors == 0, "{total:?}");
        assert_eq!(taken.len() as u64 + total.lost, ALL, "{total:?}");
        writer.finish(&account).1.expect("the file is whole");

        let tcpdump = Command::new("tcpdump").arg("-nr").arg(file.path()).output().expect("tcpdump");
        assert!(tcpdump.status.success(), "{}", String::from_utf8_lossy(&tcpdump.stderr));
        let lines = tcpdump.stdout.iter().filter(|&&byte| byte == b'\n').count() as u64;
        assert!(lines >= total.captured, "{lines} lines, {total:?}");
    });
}
