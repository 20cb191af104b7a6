//! The options of `weir capture` for its files: rotation, retention and compression. Letters and meanings are
//! tcpdump's, except that sizes and times have units.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use weir::writer::{Compression, Rotation, WriterOptions};

use crate::units;

/// The format of a file of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    Pcapng,
    Pcap,
}

impl FormatArg {
    /// Returns the format that the name of a file says, before the suffix of a compression.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        let packed = Compression::of_name(path).is_some();
        let name = if packed { Path::new(path.file_stem()?) } else { path };
        match name.extension()?.to_str()? {
            "pcap" => Some(Self::Pcap),
            "pcapng" => Some(Self::Pcapng),
            _ => None,
        }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "File rotation and compression")]
pub(crate) struct FilesArgs {
    /// Start a new file at SIZE: 100MB, 1GiB.
    ///
    /// SIZE is measured before compression. Files are named trace.pcapng, trace1.pcapng, trace2.pcapng
    /// ...; other names get the number behind them, as in tcpdump: trace.pcap1.
    #[arg(short = 'C', long, value_name = "SIZE", value_parser = units::file_size, requires = "write")]
    #[arg(allow_hyphen_values = true)]
    rotate_size: Option<u64>,

    /// Start a new file every TIME: 60s, 1h.
    ///
    /// A file starts even without packets. A number alone is in seconds. Put a time into FILE (such as %H%M%S) to give each file its own name; a repeated name gets a number.
    #[arg(short = 'G', long, value_name = "TIME", value_parser = units::seconds, requires = "write")]
    #[arg(allow_hyphen_values = true)]
    rotate_time: Option<Duration>,

    /// With -G, rotate at multiples of TIME on the local clock, such as on the hour.
    #[arg(hide_short_help = true, long, requires = "rotate_time")]
    align: bool,

    /// Start a new file after N packets.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = units::count, allow_hyphen_values = true, requires = "write")]
    rotate_count: Option<u64>,

    /// Keep the newest N files; -G alone: stop after N.
    ///
    /// With -C or --rotate-count, files are named ring0.pcapng to ring9.pcapng if N is 10. The oldest file is
    /// deleted when there are more than N or the disk is full. Files that earlier runs
    /// of the ring wrote count; other files are left alone, whatever their names.
    #[arg(short = 'W', long, value_name = "N", value_parser = units::files, allow_hyphen_values = true)]
    rotate_files: Option<u32>,

    /// Delete the oldest files to keep the total on disk within SIZE: 10GB.
    ///
    /// Files that earlier runs wrote with the same FILE count, too. The oldest files are also deleted when the disk is
    /// full.
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = units::file_size, allow_hyphen_values = true)]
    keep_size: Option<u64>,

    /// Stop once the files total SIZE: 1GB.
    ///
    /// SIZE is measured before compression. The packet that reaches it is the last.
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = units::file_size, requires = "write")]
    #[arg(allow_hyphen_values = true, help_heading = "Stop conditions")]
    size: Option<u64>,

    /// Run `COMMAND FILE` on each finished file.
    ///
    /// COMMAND runs without a shell, at the lowest priority; capturing does not wait for it.
    #[arg(hide_short_help = true, short = 'z', long, value_name = "COMMAND", requires = "write")]
    postrotate: Option<OsString>,

    /// Let the group read the files (mode 0640); the default is owner only (0600).
    #[arg(short = 'g', long, requires = "write")]
    group_readable: bool,

    /// Compress with zstd, zstd:LEVEL, lz4 or gzip.
    ///
    /// LEVEL ranges from -100 (fastest) to 22 (smallest); the default is -1. A FILE that ends in
    /// .zst, .lz4 or .gz is compressed without this option. Wireshark 4.0 reads .lz4 and .gz, but only the
    /// beginning of .zst (4.4 reads all of it): use `zstd -dc FILE | tshark -r -`.
    #[arg(long, value_name = "KIND", value_parser = compression, requires = "write")]
    compress: Option<Compression>,

    /// Go on capturing when the disk is full.
    ///
    /// Without it, a full disk ends the capture, unless there is an old file of a ring to delete. With it, packets without
    /// room are dropped and counted, and weir tries again every second. The file tells how many packets are missing, and where
    /// (pcapng); pcap cannot, but the summary does. The same goes for a full quota; other errors of the disk end the capture.
    #[arg(hide_short_help = true, long, requires = "write")]
    keep_going: bool,

    /// Do not overwrite an existing file.
    ///
    /// With -C, -G and --rotate-count, weir never overwrites a file but takes the next number.
    #[arg(hide_short_help = true, long, requires = "write")]
    no_clobber: bool,

    /// fsync each file when it is closed.
    ///
    /// Also syncs the directory entry. Both happen before -z or anything else uses the file.
    #[arg(hide_short_help = true, long, requires = "write")]
    fsync: bool,
}

impl FilesArgs {
    /// Checks rules between values; `file`: that of -w.
    pub(crate) fn check(&self, file: Option<&Path>) -> Result<(), String> {
        let rotates = self.rotation().rotates();
        if self.rotate_files.is_some() && !rotates {
            return Err(
                "-W requires -C, -G or --rotate-count: without them there is only one file".to_owned()
            );
        }
        if self.keep_size.is_some() && !rotates {
            return Err("--keep-size requires -C, -G or --rotate-count: without them there is only one file"
                .to_owned());
        }
        if let (Some(keep), Some(size)) = (self.keep_size, self.rotate_size)
            && keep < size
        {
            return Err("--keep-size must not be smaller than -C".to_owned());
        }
        if rotates && file == Some(Path::new("-")) {
            return Err("-C, -G and --rotate-count cannot be used with standard output".to_owned());
        }
        named_as_asked(self.compress, file)
    }

    /// Returns whether the files have a size that they must not exceed together.
    pub(crate) fn limits_size(&self) -> bool {
        self.size.is_some()
    }

    fn rotation(&self) -> Rotation {
        weir::with!(
            Rotation::default(),
            size = self.rotate_size,
            packets = self.rotate_count,
            period = self.rotate_time,
            aligned = self.align,
            files = self.rotate_files,
            keep_bytes = self.keep_size,
            in_all = self.size
        )
    }

    /// Applies these arguments to `options`.
    pub(crate) fn apply(&self, options: WriterOptions, file: Option<&Path>) -> WriterOptions {
        weir::with!(
            options,
            compression = self.compress.or_else(|| file.and_then(Compression::of_name)).unwrap_or_default(),
            rotation = self.rotation(),
            strftime = true,
            keep_going = self.keep_going,
            no_clobber = self.no_clobber,
            fsync = self.fsync,
            group_readable = self.group_readable,
            command = self.postrotate.clone()
        )
    }
}

/// Rejects a file name whose ending contradicts `--compress`, as it would mislead readers.
pub(crate) fn named_as_asked(asked: Option<Compression>, file: Option<&Path>) -> Result<(), String> {
    let named = file.and_then(Compression::of_name);
    if let (Some(asked), Some(named)) = (asked, named)
        && std::mem::discriminant(&asked) != std::mem::discriminant(&named)
    {
        return Err("--compress contradicts the extension of FILE".to_owned());
    }
    Ok(())
}

pub(crate) fn compression(text: &str) -> Result<Compression, String> {
    let (kind, level) = text.split_once(':').map_or((text, None), |(kind, level)| (kind, Some(level)));
    let levels = Compression::ZSTD_LEVELS;
    match (kind, level) {
        ("zstd", None) => Ok(Compression::Zstd { level: Compression::ZSTD_LEVEL }),
        ("zstd", Some(level)) => {
            let level = level.parse().ok().filter(|level| levels.contains(level));
            let level =
                level.ok_or_else(|| format!("allowed levels: {} to {}", levels.start(), levels.end()))?;
            Ok(Compression::Zstd { level })
        }
        ("lz4", None) => Ok(Compression::Lz4),
        ("gzip", None) => Ok(Compression::Gzip),
        ("none", None) => Ok(Compression::None),
        _ => Err("allowed: zstd, zstd:LEVEL, lz4, gzip, none".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_compression() {
        assert_eq!(compression("zstd"), Ok(Compression::Zstd { level: Compression::ZSTD_LEVEL }));
        assert_eq!(compression("zstd:-5"), Ok(Compression::Zstd { level: -5 }));
        assert_eq!(compression("lz4"), Ok(Compression::Lz4));
        for text in ["zstd:", "zstd:23", "zstd:x", "lz4:1", "bzip2", ""] {
            assert!(compression(text).is_err_and(|error| error.contains("allowed")), "{text}");
        }
    }
}
