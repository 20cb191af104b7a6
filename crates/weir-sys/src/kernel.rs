//! Which kernel this is.

use rustix::system::uname;

/// Its release, as `uname -r` has it.
pub fn release() -> String {
    uname().release().to_string_lossy().into_owned()
}

/// Its version and patch level: `(6, 12)`. Only for tests and for what it cannot be asked: distributions add features.
pub fn version() -> (u32, u32) {
    parse(&release())
}

fn parse(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(parse("6.12.95+deb12-amd64"), (6, 12));
        assert_eq!(parse("7.0-rc1"), (7, 0));
        assert_eq!(parse("6"), (6, 0));
        assert_eq!(parse(""), (0, 0));
        assert!(version() >= (6, 1), "{}", release());
    }
}
