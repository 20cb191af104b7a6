//! Classic pcap; what does not begin like it is made to.

#![no_main]

use libfuzzer_sys::fuzz_target;

mod checks;

const MAGICS: [u32; 5] = [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34, 0x1c00_01ac, 0x1c00_01ab];

fuzz_target!(|bytes: &[u8]| {
    let mut file = bytes.to_vec();
    let Some(magic) = file.first_chunk_mut::<4>() else { return };
    if !MAGICS.iter().any(|known| [known.to_le_bytes(), known.to_be_bytes()].contains(magic)) {
        *magic = MAGICS[0].to_le_bytes();
    }
    checks::decode(&file);
    checks::read(&file, u64::MAX);
});
