//! Null where the manual pages want something else: the error, never a crash. libpcap crashes, so only this library is
//! asked.

use std::ffi::c_char;
use std::ptr::{null, null_mut};

use weir_pcap::abi::{BpfProgram, PCAP_ERRBUF_SIZE, PCAP_ERROR, PcapHandler, PcapPkthdr};
use weir_pcap::compile::*;
use weir_pcap::created::*;
use weir_pcap::datalinks::*;
use weir_pcap::dump::*;
use weir_pcap::handle::*;
use weir_pcap::loops::*;
use weir_pcap::offline::*;
use weir_pcap::properties::*;
use weir_pcap::version::*;

unsafe extern "C-unwind" fn ignore(_: *mut u8, _: *const PcapPkthdr, _: *const u8) {}

/// Checks what each call returns.
macro_rules! calls {
    ($($call:expr => $wanted:expr;)*) => {$(
        // SAFETY: null, or what the call wants.
        let got = unsafe { $call };
        assert_eq!(got, $wanted, "{}", stringify!($call));
    )*};
}

#[test]
fn no_handle() {
    let callback: PcapHandler = Some(ignore);
    calls! {
        pcap_datalink(null_mut()) => PCAP_ERROR;
        pcap_snapshot(null_mut()) => PCAP_ERROR;
        pcap_get_tstamp_precision(null_mut()) => PCAP_ERROR;
        pcap_file(null_mut()) => null_mut();
        pcap_fileno(null_mut()) => PCAP_ERROR;
        pcap_get_selectable_fd(null_mut()) => PCAP_ERROR;
        pcap_stats(null_mut(), null_mut()) => PCAP_ERROR;
        pcap_getnonblock(null_mut(), null_mut()) => PCAP_ERROR;
        pcap_setnonblock(null_mut(), 1, null_mut()) => PCAP_ERROR;
        pcap_setdirection(null_mut(), 0) => PCAP_ERROR;
        pcap_inject(null_mut(), null(), 1) => PCAP_ERROR;
        pcap_sendpacket(null_mut(), null(), 1) => PCAP_ERROR;
        pcap_list_datalinks(null_mut(), null_mut()) => PCAP_ERROR;
        pcap_set_datalink(null_mut(), 1) => PCAP_ERROR;
        pcap_free_datalinks(null_mut()) => ();
        pcap_list_tstamp_types(null_mut(), null_mut()) => PCAP_ERROR;
        pcap_set_snaplen(null_mut(), 1) => PCAP_ERROR;
        pcap_set_tstamp_precision(null_mut(), 1) => PCAP_ERROR;
        pcap_can_set_rfmon(null_mut()) => PCAP_ERROR;
        pcap_activate(null_mut()) => PCAP_ERROR;
        pcap_dispatch(null_mut(), 1, callback, null_mut()) => PCAP_ERROR;
        pcap_loop(null_mut(), 1, callback, null_mut()) => PCAP_ERROR;
        pcap_next(null_mut(), null_mut()) => null();
        pcap_next_ex(null_mut(), null_mut(), null_mut()) => PCAP_ERROR;
        pcap_breakloop(null_mut()) => ();
        pcap_compile(null_mut(), null_mut(), null(), 0, 0) => PCAP_ERROR;
        pcap_setfilter(null_mut(), null()) => PCAP_ERROR;
        pcap_freecode(null_mut()) => ();
        pcap_offline_filter(null(), null(), null()) => 0;
        pcap_dump_open(null_mut(), c"/dev/null".as_ptr()) => null_mut();
        pcap_dump_fopen(null_mut(), null_mut()) => null_mut();
        pcap_dump_open_append(null_mut(), c"/dev/null".as_ptr()) => null_mut();
        pcap_dump(null_mut(), null(), null()) => ();
        pcap_dump_ftell(null_mut()) => -1;
        pcap_dump_ftell64(null_mut()) => -1;
        pcap_dump_flush(null_mut()) => PCAP_ERROR;
        pcap_dump_close(null_mut()) => ();
        pcap_close(null_mut()) => ();
        pcap_init(77, null_mut()) => PCAP_ERROR;
        pcap_open_offline(null(), null_mut()) => null_mut();
        pcap_fopen_offline(null_mut(), null_mut()) => null_mut();
    }
}

#[test]
fn nothing_else() {
    let dead = pcap_open_dead(1, 100);
    let mut no_instructions = BpfProgram { bf_len: 5, bf_insns: null_mut() };
    calls! {
        pcap_dispatch(dead, 1, None, null_mut()) => PCAP_ERROR;
        pcap_loop(dead, 1, None, null_mut()) => PCAP_ERROR;
        pcap_compile(dead, null_mut(), c"ip".as_ptr(), 0, 0) => PCAP_ERROR;
        pcap_list_datalinks(dead, null_mut()) => PCAP_ERROR;
        pcap_list_tstamp_types(dead, null_mut()) => PCAP_ERROR;
        pcap_dump_fopen(dead, null_mut()) => null_mut();
        pcap_dump_open(dead, null()) => null_mut();
        pcap_freecode(&raw mut no_instructions) => ();
    }
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/tcpdump.pcap\0");
    let mut error: [c_char; PCAP_ERRBUF_SIZE] = [0; PCAP_ERRBUF_SIZE];
    // SAFETY: a path and a buffer.
    let file = unsafe { pcap_open_offline(corpus.as_ptr().cast(), error.as_mut_ptr()) };
    assert!(!file.is_null());
    calls! {
        pcap_setfilter(file, null()) => PCAP_ERROR;
        pcap_setfilter(file, &raw const no_instructions) => PCAP_ERROR;
        pcap_next_ex(file, null_mut(), null_mut()) => 1;
        pcap_close(file) => ();
        pcap_close(dead) => ();
    }
}
