//! Packets as text.

/// A packet of a text file: a line has its link type, its length on the wire, and the bytes captured, in hexadecimal.
pub(crate) struct Frame {
    pub(crate) link_type: u16,
    pub(crate) original_len: u32,
    pub(crate) data: Vec<u8>,
}

/// Returns the packets of a file, without comments.
pub(crate) fn frames(text: &str) -> Vec<Frame> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut fields = line.split(' ');
            let mut field = || fields.next().expect("three fields");
            let (link_type, original_len) = (field().parse().unwrap(), field().parse().unwrap());
            Frame { link_type, original_len, data: bytes(field()) }
        })
        .collect()
}

/// Returns the bytes of hexadecimal digits, between which hyphens may be.
pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|digit| *digit != b'-').collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
