//! The kernel's version.

use rustix::system::uname;

/// Returns the kernel's release, as in `uname -r`.
pub fn release() -> String {
    uname().release().to_string_lossy().into_owned()
}

/// Returns the kernel's version and patch level: `(6, 12)`. Only for tests, and for features that cannot be probed:
/// distributions backport features.
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
