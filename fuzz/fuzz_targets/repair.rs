//! Repairing damaged files.

#![no_main]

use libfuzzer_sys::fuzz_target;

mod checks;

fuzz_target!(|bytes: &[u8]| {
    // What compressed data unpack to is the business of `packed`; here they would only be slow.
    if !matches!(bytes, [0x1f, 0x8b, ..] | [0x28, 0xb5, ..] | [_, _, 0x4d, 0x18, ..]) {
        checks::repair(bytes);
    }
});
