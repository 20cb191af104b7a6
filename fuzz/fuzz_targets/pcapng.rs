//! pcapng; what does not begin like it gets a section header.

#![no_main]

use libfuzzer_sys::fuzz_target;

mod checks;

const SECTION: &[u8; 28] =
    b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0";

fuzz_target!(|bytes: &[u8]| {
    let header = if bytes.starts_with(&SECTION[..4]) { &[][..] } else { SECTION };
    let file = [header, bytes].concat();
    checks::decode(&file);
    checks::read(&file, u64::MAX);
});
