//! Numbers as people read them.

/// Formats `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of packets: `1 packet`, `1,234 packets`.
pub fn packets(number: u64) -> String {
    format!("{} packet{}", grouped(number), if number == 1 { "" } else { "s" })
}
