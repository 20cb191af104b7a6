//! Lines of standard input, as many as there are at the moment: who writes them waits for none, and many of them are one request.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The longest line, in bytes.
const LONGEST: usize = 64 << 10;

/// A line with a rule.
pub(super) struct Line {
    /// Its number, from 1; `None`: it is an argument.
    pub(super) number: Option<usize>,
    pub(super) text: String,
}

/// Lines that arrive.
pub(super) struct Lines {
    from: File,
    /// What was read and is not taken yet.
    rest: Vec<u8>,
    /// How many lines were taken.
    taken: usize,
    ended: bool,
}

impl Lines {
    pub(super) fn standard() -> io::Result<Self> {
        // Without the buffer of `io::stdin`, since that is not what a poll sees.
        let from = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Self { from, rest: Vec::new(), taken: 0, ended: false })
    }

    /// Waits for input, and returns the lines that have come, `most` at a time, without comments and empty ones; `None`: there are no more.
    pub(super) fn batch(&mut self, most: usize) -> io::Result<Option<Vec<Line>>> {
        let mut lines = Vec::new();
        loop {
            self.take(most, &mut lines);
            let is_enough = lines.len() == most || !lines.is_empty() && !self.is_ready()?;
            if is_enough {
                return Ok(Some(lines));
            }
            if self.ended {
                return Ok((!lines.is_empty()).then_some(lines));
            }
            self.read()?;
        }
    }

    /// Takes whole lines out of what was read.
    fn take(&mut self, most: usize, lines: &mut Vec<Line>) {
        let mut begin = 0;
        while lines.len() < most && begin < self.rest.len() {
            let end = self.rest[begin..].iter().position(|&byte| byte == b'\n').map(|at| begin + at);
            // The last line may end without a newline.
            let Some(end) = end.or_else(|| self.ended.then_some(self.rest.len())) else { break };
            self.taken += 1;
            let text = String::from_utf8_lossy(&self.rest[begin..end]);
            let text = text.split('#').next().unwrap_or_default().trim_end();
            if !text.trim_start().is_empty() {
                lines.push(Line { number: Some(self.taken), text: text.to_owned() });
            }
            begin = (end + 1).min(self.rest.len());
        }
        self.rest.drain(..begin);
    }

    /// Returns whether there is input, or its end.
    fn is_ready(&self) -> io::Result<bool> {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&self.from, PollFlags::IN)], Some(&at_once))?;
        Ok(!self.ended && ready > 0)
    }

    fn read(&mut self) -> io::Result<()> {
        if self.rest.len() > LONGEST {
            return Err(io::Error::other(format!("line {} is too long", self.taken + 1)));
        }
        let before = self.rest.len();
        self.rest.resize(before + LONGEST, 0);
        let read = loop {
            match self.from.read(&mut self.rest[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.rest.truncate(before + read.as_ref().copied().unwrap_or(0));
        self.ended = read? == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Write as _, pipe};
    use std::os::fd::OwnedFd;

    use super::*;

    fn texts(lines: Option<Vec<Line>>) -> Vec<(usize, String)> {
        let lines = lines.into_iter().flatten();
        lines.map(|line| (line.number.expect("a number"), line.text)).collect()
    }

    #[test]
    fn lines_are_taken_as_they_come() {
        let (from, mut to) = pipe().expect("a pipe");
        let from = File::from(OwnedFd::from(from));
        let mut lines = Lines { from, rest: Vec::new(), taken: 0, ended: false };
        to.write_all(b"a\n\n # none\nb # why\nc").expect("room");
        let line = |number, text: &str| (number, text.to_owned());
        assert_eq!(texts(lines.batch(10).expect("lines")), [line(1, "a"), line(4, "b")]);
        to.write_all(b"d\ne\nf\ng").expect("room");
        assert_eq!(texts(lines.batch(2).expect("lines")), [line(5, "cd"), line(6, "e")]);
        drop(to);
        assert_eq!(texts(lines.batch(10).expect("lines")), [line(7, "f"), line(8, "g")]);
        assert!(lines.batch(10).expect("the end").is_none());
    }

    #[test]
    fn a_line_without_end_is_an_error() {
        let mut lines = Lines {
            from: File::open("/dev/zero").expect("a file"),
            rest: Vec::new(),
            taken: 2,
            ended: false,
        };
        let error = lines.batch(10).map(texts).expect_err("no line").to_string();
        assert_eq!(error, "line 3 is too long");
    }
}
