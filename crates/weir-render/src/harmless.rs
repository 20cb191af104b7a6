//! Text from others, safe to print on a terminal.

/// Returns whether a character would control the terminal: as a command, as a line break, or by changing the order of
/// what follows (Unicode's UAX #9).
pub fn is_order(letter: char) -> bool {
    let turns = matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || turns || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// Returns text from others on one line, with control characters as `\u{1b}`.
pub fn visible(text: &str) -> String {
    let shown = |letter: char| {
        if is_order(letter) { letter.escape_default().to_string() } else { letter.to_string() }
    };
    text.chars().map(shown).collect()
}

/// Makes text from a file safe to print on a terminal.
pub fn harmless(text: &str) -> String {
    text.chars().map(|c| if is_order(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn orders_to_the_terminal_are_shown() {
        assert_eq!(visible("a `\x1b[2Jé\u{9b}1m\n"), "a `\\u{1b}[2Jé\\u{9b}1m\\n");
        assert_eq!(visible("a\u{202e}fdp.exe\u{2066}"), "a\\u{202e}fdp.exe\\u{2066}");
    }
}
