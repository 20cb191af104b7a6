//! Compressed files, which libpcap does not read: the packets are those of weir's reader.

use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::slice;

use weir::reader::Reader;
use weir_pcap::abi::{PCAP_ERRBUF_SIZE, PCAP_ERROR, PCAP_ERROR_BREAK};
use weir_pcap::handle::{Pcap, pcap_close, pcap_geterr};
use weir_pcap::loops::pcap_next_ex;
use weir_pcap::offline::pcap_open_offline_with_tstamp_precision;

/// A packet: nanoseconds, bytes on the wire, bytes captured.
type Packet = (u64, u32, Vec<u8>);

fn corpus(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(file)
}

/// Opens a file with nanoseconds; the error is the text.
fn open(path: &Path) -> Result<*mut Pcap, String> {
    let name = CString::new(path.to_str().expect("UTF-8")).expect("no zero");
    let mut error: [c_char; PCAP_ERRBUF_SIZE] = [0; PCAP_ERRBUF_SIZE];
    // SAFETY: a path and a buffer.
    let pcap = unsafe { pcap_open_offline_with_tstamp_precision(name.as_ptr(), 1, error.as_mut_ptr()) };
    // SAFETY: the buffer holds a text, or was empty.
    let text = unsafe { CStr::from_ptr(error.as_ptr()) };
    if pcap.is_null() { Err(text.to_string_lossy().into_owned()) } else { Ok(pcap) }
}

/// Reads all packets; returns the status at the end and the handle's text.
fn read(pcap: *mut Pcap) -> (Vec<Packet>, i32, String) {
    let (mut packets, mut header, mut data) = (Vec::new(), null_mut(), null());
    let status = loop {
        // SAFETY: the handle is open.
        let status = unsafe { pcap_next_ex(pcap, &raw mut header, &raw mut data) };
        if status != 1 {
            break status;
        }
        // SAFETY: the header is the handle's.
        let header = unsafe { *header };
        // SAFETY: the packet has as many bytes.
        let data = unsafe { slice::from_raw_parts(data, header.caplen as usize) }.to_vec();
        let [seconds, nanos] = [header.ts.tv_sec, header.ts.tv_usec].map(i64::cast_unsigned);
        packets.push((seconds * 1_000_000_000 + nanos, header.len, data));
    };
    // SAFETY: the handle is open.
    let text = unsafe { pcap_geterr(pcap) };
    // SAFETY: the text is the handle's.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: nobody uses the handle any more.
    unsafe { pcap_close(pcap) };
    (packets, status, text)
}

#[test]
fn packets_are_those_of_the_reader() {
    for file in ["one-member.pcapng.gz", "two-members.pcapng.gz", "frames.pcap.lz4", "frames.pcapng.zst"] {
        let path = corpus(file);
        let mut reader = Reader::open(&path).expect("a capture");
        let mut wanted: Vec<Packet> = Vec::new();
        while let Some(packet) = reader.next_packet().expect("whole") {
            wanted.push((packet.timestamp, packet.original_len, packet.data.to_vec()));
        }
        assert!(!wanted.is_empty(), "{file}");
        assert_eq!(
            read(open(&path).expect("a capture")),
            (wanted, PCAP_ERROR_BREAK, String::new()),
            "{file}"
        );
    }
}

#[test]
fn a_file_that_is_cut_is_an_error() {
    let told = match open(&corpus("cut.pcapng.zst")) {
        Err(text) => text,
        Ok(pcap) => {
            let (_, status, text) = read(pcap);
            assert_eq!(status, PCAP_ERROR);
            text
        }
    };
    assert!(told.starts_with("error reading dump file: "), "{told}");
}
