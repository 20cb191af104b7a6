//! Both references, on programs and packets with obvious results.

use weir_judge::{Instruction, KernelFilter, Libpcap, Setup};

/// Accepts IPv4, truncated to 20 bytes.
const IPV4: [Instruction; 4] = [(0x28, 0, 0, 12), (0x15, 0, 1, 0x800), (0x6, 0, 0, 20), (0x6, 0, 0, 0)];

fn frame(kind: u16) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..14].copy_from_slice(&kind.to_be_bytes());
    frame
}

#[test]
fn the_kernel_filters_and_cuts() {
    let filter = KernelFilter::attach(&IPV4).unwrap();
    assert_eq!(filter.run(&frame(0x800)).unwrap(), Some(20));
    assert_eq!(filter.run(&frame(0x806)).unwrap(), None);
    assert_eq!(filter.run(&frame(0x800)).unwrap(), Some(20), "what was refused does not stay");
    assert_eq!(filter.run(&frame(0x800)[..13]).unwrap(), None, "what is not there refuses");
    assert_eq!(filter.run(&[]).unwrap(), None);
}

#[test]
fn an_empty_packet_can_be_accepted() {
    let filter = KernelFilter::attach(&[(0x6, 0, 0, 1)]).unwrap();
    assert_eq!(filter.run(&[]).unwrap(), Some(0));
}

#[test]
fn the_kernel_refuses_what_never_returns() {
    assert_eq!(KernelFilter::attach(&[(0x28, 0, 0, 12)]).unwrap_err().raw_os_error(), Some(22));
}

#[test]
fn libpcap_compiles_and_runs() {
    let libpcap = Libpcap::open().unwrap();
    assert!(libpcap.version().starts_with("libpcap version 1."), "{}", libpcap.version());
    let program = libpcap.compile("ip", &Setup { snap_len: 20, ..Setup::new(1) }).unwrap();
    assert_eq!(program.instructions(), IPV4);
    assert_eq!(libpcap.run(&program, 60, &frame(0x800)), 20);
    assert_eq!(libpcap.run(&program, 60, &frame(0x806)), 0);
    assert_eq!(libpcap.run(&program, 60, &frame(0x800)[..13]), 0);
    assert_eq!(libpcap.program(&IPV4).unwrap().instructions(), IPV4);
}

#[test]
fn libpcap_says_what_is_wrong() {
    let libpcap = Libpcap::open().unwrap();
    assert!(libpcap.compile("ip and", &Setup::new(1)).unwrap_err().contains("syntax error"));
    assert!(libpcap.compile("ip\0", &Setup::new(1)).is_err());
    assert!(libpcap.program(&[(0x15, 9, 9, 0)]).is_err(), "it jumps out of itself");
}

#[test]
fn link_types_are_those_of_files_in_either_byte_order() {
    let libpcap = Libpcap::open().unwrap();
    let first = |setup: &Setup| libpcap.compile("ip", setup).unwrap().instructions();
    assert_eq!(first(&Setup::new(101))[2].3, 0x40, "raw IP: the version in the first byte");
    let null = Setup::new(0);
    let native = first(&null);
    assert_ne!(native, first(&Setup { swapped: true, ..null }));
}

#[test]
fn the_optimiser_is_asked_for() {
    let libpcap = Libpcap::open().unwrap();
    let plain = Setup::new(1);
    let length = |setup: &Setup| libpcap.compile("tcp port 80", setup).unwrap().instructions().len();
    assert!(length(&plain) > length(&Setup { optimise: true, ..plain }));
}
