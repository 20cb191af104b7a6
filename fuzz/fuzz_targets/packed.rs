//! Files of any kind, compressed or not.

#![no_main]

use libfuzzer_sys::fuzz_target;

mod checks;

fuzz_target!(|bytes: &[u8]| checks::read(bytes, 10_000));
