//! Sizes in readable form.

/// Formats bytes in binary units: exactly if the size is a multiple of the unit, otherwise to one decimal place.
pub(crate) fn binary(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some(power) = bytes.max(1).ilog2().checked_div(10).filter(|&power| power > 0) else {
        return format!("{bytes} bytes");
    };
    let (unit, name) = (1 << (10 * power), UNITS[power as usize - 1]);
    if bytes.is_multiple_of(unit) {
        return format!("{} {name}", bytes / unit);
    }
    // Ten times what remains below an EiB fits into 64 bits.
    format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_read_as_people_write_them() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (1 << 20, "1 MiB"),
            (64 << 20, "64 MiB"),
            ((1 << 40) + (1 << 38), "1.2 TiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(super::binary(bytes), text);
        }
    }
}
