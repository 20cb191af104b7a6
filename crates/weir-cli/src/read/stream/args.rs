//! Options for one stream of a file.

use std::fs::File;
use std::path::Path;

use clap::{Args, ValueEnum};

use super::wanted::Wanted;
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(next_help_heading = "One stream")]
pub(crate) struct StreamArgs {
    /// Print the payload of one TCP or UDP stream, in order: N, udp:N, or A:PORT-B:PORT.
    ///
    /// N is the number that tshark calls tcp.stream or udp.stream: streams are counted from 0 as they first appear, TCP and UDP
    /// apart (0 or tcp:0, udp:0). A:PORT-B:PORT names the two ends (also tcp:..., udp:...): of several connections with these ends
    /// all are printed. Lines that begin with > are from the end that was seen first, those with < from the other. Bytes are
    /// in the order of their sequence numbers, without retransmissions; where some were sent in different versions, those captured
    /// first count. `[1,448 bytes missing]` stands for what was confirmed but is not in the file. Bytes that
    /// wait for others take 8 MiB of memory at most, in each direction; a note says if that was not enough. Control characters
    /// show as \u{1b}, bytes that are no text as \xff. IP fragments are not joined; a note says how many there were. With
    /// a filter, -c or --from, streams are counted among the packets that these select.
    #[arg(long = "stream", value_name = "STREAM")]
    #[arg(conflicts_with_all = ["follow", "json", "only_count", "check", "split", "format", "compress", "repair"])]
    stream: Option<Wanted>,

    /// With --stream, print bytes as hexadecimal numbers, too.
    #[arg(id = "stream_hex", hide_short_help = true, long = "hex", conflicts_with = "raw")]
    hex: bool,

    /// With --stream and -w, write the bytes alone.
    #[arg(hide_short_help = true, long)]
    raw: bool,

    /// With --stream, only one way: there (>), or back (<).
    #[arg(hide_short_help = true, long, value_name = "WAY", value_enum)]
    way: Option<WayArg>,
}

/// One way of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum WayArg {
    /// From the end that was seen first.
    There,
    /// From the other.
    Back,
}

/// How a stream is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamFormat {
    Text,
    Hex,
    Raw,
}

impl StreamArgs {
    /// Returns the stream; `None`: packets are wanted.
    pub(in super::super) fn wanted(&self) -> Option<&Wanted> {
        self.stream.as_ref()
    }

    /// Returns whether this way, 0 or 1, is printed.
    pub(super) fn has(&self, way: usize) -> bool {
        match self.way {
            None => true,
            Some(WayArg::There) => way == 0,
            Some(WayArg::Back) => way == 1,
        }
    }

    pub(super) fn format(&self) -> StreamFormat {
        match (self.raw, self.hex) {
            (true, _) => StreamFormat::Raw,
            (_, true) => StreamFormat::Hex,
            _ => StreamFormat::Text,
        }
    }

    /// Checks what the parser cannot.
    pub(in super::super) fn check(&self, write: Option<&Path>) -> Result<(), Failure> {
        let alone = [(self.hex, "--hex"), (self.raw, "--raw"), (self.way.is_some(), "--way")];
        if let (None, Some((_, option))) = (&self.stream, alone.iter().find(|(is, _)| *is)) {
            let failure = Failure::usage(format!("cannot use {option} without --stream"));
            return Err(failure.hint("to print the bytes of packets: -x, with text -X"));
        }
        match (&self.stream, self.raw, write) {
            (Some(_), false, Some(_)) => {
                let failure = Failure::usage("cannot write a stream as a capture file");
                Err(failure.hint("its bytes: add --raw; its packets: a filter, such as -- host A and host B and tcp port 80"))
            }
            (Some(_), true, None) => {
                let failure = Failure::usage("cannot print raw bytes on standard output unasked");
                Err(failure.hint("name a file with -w; -w - is standard output"))
            }
            _ => Ok(()),
        }
    }

    /// Creates the file for raw bytes.
    pub(in super::super) fn file(&self, write: Option<&Path>) -> Result<Option<File>, Failure> {
        let Some(path) = write.filter(|path| self.raw && *path != Path::new("-")) else { return Ok(None) };
        let create = File::create(path);
        create
            .map(Some)
            .map_err(|error| Failure::new(format_args!("cannot create {}: {error}", path.display())))
    }
}
