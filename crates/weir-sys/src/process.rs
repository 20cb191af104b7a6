//! Processes of others, as `/proc` shows them.

use std::fs;
use std::io;

/// What `/proc/PID/stat` says of a process (`proc_pid_stat(5)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The number of its parent.
    pub parent: u32,
    /// When it started, in hundredths of a second since the system did (`USER_HZ` is 100 on every machine): tells it from others that
    /// have its number later.
    pub started: u64,
}

impl Stat {
    /// Reads the line of a process that runs.
    ///
    /// # Errors
    ///
    /// There is no such process, or `/proc` is not mounted.
    pub fn of(process: u32) -> io::Result<Self> {
        let line = fs::read(format!("/proc/{process}/stat"))?;
        Self::parse(&line).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Reads such a line. The name in parentheses may have any bytes.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let end = line.iter().rposition(|&byte| byte == b')')?;
        let mut fields = str::from_utf8(&line[end + 1..]).ok()?.split_ascii_whitespace();
        // Fields 4 and 22; the first behind the name is the third.
        let parent = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(17)?.parse().ok()?;
        Some(Self { parent, started })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_look_like_fields() {
        let line = b"7 (a ) R 1) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 0\n";
        assert_eq!(Stat::parse(line), Some(Stat { parent: 1, started: 4711 }));
        assert_eq!([&b""[..], b"7 (a ) R 1", b"7 (a) S 1 2 3"].map(Stat::parse), [None; 3]);
        let own = Stat::of(std::process::id()).expect("it runs");
        assert!(own.parent > 0 && own.started > 0);
    }
}
