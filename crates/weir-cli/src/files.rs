//! The options of `weir capture` for its files: when one ends and the next begins, which are kept, and compression. Letters
//! and meanings are tcpdump's, sizes and times have units.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use weir::writer::{Compression, Rotation, WriterOptions};

use crate::units;

#[derive(Debug, Args)]
#[command(next_help_heading = "Several files, compression")]
pub(crate) struct FilesArgs {
    /// Begin the next file once one has this size, before compression: 100MB, 1GiB. The files are FILE, FILE1, FILE2 ...
    #[arg(short = 'C', long, value_name = "SIZE", value_parser = units::file_size, requires = "write")]
    #[arg(allow_hyphen_values = true)]
    rotate_size: Option<u64>,

    /// Begin the next file each time this time is over, packets or not: 60s, 1h. For names that differ write a time into
    /// FILE (%H%M%S); a name that comes again gets a number.
    #[arg(short = 'G', long, value_name = "TIME", value_parser = units::duration, requires = "write")]
    #[arg(allow_hyphen_values = true)]
    rotate_time: Option<Duration>,

    /// With -G: files end when the local clock shows a multiple of TIME, such as the full hour.
    #[arg(long, requires = "rotate_time")]
    align: bool,

    /// Begin the next file once one has so many packets.
    #[arg(long, value_name = "N", value_parser = units::count, allow_hyphen_values = true, requires = "write")]
    rotate_count: Option<u64>,

    /// With -C or --rotate-count: keep the newest N files, FILE0 to FILE9 for 10, weir's captures of earlier runs under
    /// these names counted; other files are left alone. The oldest goes, also where the disk is full. With -G alone: stop
    /// after N files.
    #[arg(short = 'W', long, value_name = "N", value_parser = units::files, allow_hyphen_values = true)]
    rotate_files: Option<u32>,

    /// Delete the oldest files, those of earlier runs by the same FILE too, as soon as together they would have more than
    /// this on the disk: 10GB; and where the disk is full.
    #[arg(long, value_name = "SIZE", value_parser = units::file_size, allow_hyphen_values = true)]
    keep_size: Option<u64>,

    /// Stop once the files have this size together, before compression: 1GB. The packet that reaches it is the last.
    #[arg(long, value_name = "SIZE", value_parser = units::file_size, requires = "write")]
    #[arg(allow_hyphen_values = true, help_heading = "When to stop")]
    size: Option<u64>,

    /// Run `COMMAND FILE` for each finished file, without a shell, at the lowest priority; packets do not wait for it.
    #[arg(short = 'z', long, value_name = "COMMAND", requires = "write")]
    postrotate: Option<OsString>,

    /// Let the group of the files read them (0640); else they are their owner's alone (0600).
    #[arg(short = 'g', long, requires = "write")]
    group_readable: bool,

    /// Compress: zstd, zstd:LEVEL (-100 fastest, -1 usual, 22 smallest), lz4 or gzip. A FILE that ends in .zst, .lz4 or .gz
    /// asks for it, too. For Wireshark 4.0, which loses its way between frames: zstd -dc FILE | tshark -r -
    #[arg(long, value_name = "KIND", value_parser = compression, requires = "write")]
    compress: Option<Compression>,

    /// Refuse to overwrite a file that is there. With -C, -G and --rotate-count no file is ever overwritten: they take the
    /// next number.
    #[arg(long, requires = "write")]
    no_clobber: bool,

    /// Bring each finished file, and its name, to the disk before anything else is done with it (fsync).
    #[arg(long, requires = "write")]
    fsync: bool,
}

impl FilesArgs {
    /// Rules between values; `file`: that of -w.
    pub(crate) fn check(&self, file: Option<&Path>) -> Result<(), String> {
        let rotates = self.rotation().rotates();
        if self.rotate_files.is_some() && !rotates {
            return Err("-W needs -C, -G or --rotate-count: without one there is one file".to_owned());
        }
        if self.keep_size.is_some() && !rotates {
            return Err(
                "--keep-size needs -C, -G or --rotate-count: without one there is one file".to_owned()
            );
        }
        if let (Some(keep), Some(size)) = (self.keep_size, self.rotate_size)
            && keep < size
        {
            return Err("--keep-size is less than one file of -C has".to_owned());
        }
        if rotates && file == Some(Path::new("-")) {
            return Err("-C, -G and --rotate-count need a file: standard output has no second one".to_owned());
        }
        named_as_asked(self.compress, file)
    }

    fn rotation(&self) -> Rotation {
        Rotation {
            size: self.rotate_size,
            packets: self.rotate_count,
            period: self.rotate_time,
            aligned: self.align,
            files: self.rotate_files,
            keep_bytes: self.keep_size,
            in_all: self.size,
        }
    }

    /// `options`, with what these arguments say of them.
    pub(crate) fn apply(&self, options: WriterOptions, file: Option<&Path>) -> WriterOptions {
        WriterOptions {
            compression: self.compress.or_else(|| file.and_then(Compression::of_name)).unwrap_or_default(),
            rotation: self.rotation(),
            strftime: true,
            no_clobber: self.no_clobber,
            fsync: self.fsync,
            group_readable: self.group_readable,
            command: self.postrotate.clone(),
            ..options
        }
    }
}

/// A name that says another compression than `--compress` misleads who reads it.
pub(crate) fn named_as_asked(asked: Option<Compression>, file: Option<&Path>) -> Result<(), String> {
    let named = file.and_then(Compression::of_name);
    if let (Some(asked), Some(named)) = (asked, named)
        && std::mem::discriminant(&asked) != std::mem::discriminant(&named)
    {
        return Err("--compress and the end of FILE's name contradict each other".to_owned());
    }
    Ok(())
}

/// Where files of this name are made: the part of it in which no time stands, or a file beside them.
pub(crate) fn place(file: &Path) -> PathBuf {
    let steady = |path: &&Path| {
        path.parent().is_none_or(|parent| !parent.as_os_str().as_encoded_bytes().contains(&b'%'))
    };
    file.ancestors().find(steady).unwrap_or(file).to_owned()
}

pub(crate) fn compression(text: &str) -> Result<Compression, String> {
    let (kind, level) = text.split_once(':').map_or((text, None), |(kind, level)| (kind, Some(level)));
    let levels = Compression::ZSTD_LEVELS;
    match (kind, level) {
        ("zstd", None) => Ok(Compression::Zstd { level: Compression::ZSTD_LEVEL }),
        ("zstd", Some(level)) => {
            let level = level.parse().ok().filter(|level| levels.contains(level));
            let level =
                level.ok_or_else(|| format!("allowed levels are {} to {}", levels.start(), levels.end()))?;
            Ok(Compression::Zstd { level })
        }
        ("lz4", None) => Ok(Compression::Lz4),
        ("gzip", None) => Ok(Compression::Gzip),
        ("none", None) => Ok(Compression::None),
        _ => Err("allowed are zstd, zstd:LEVEL, lz4, gzip and none".to_owned()),
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

    #[test]
    fn places_without_times() {
        for (file, expected) in [
            ("a/b", "a/b"),
            ("/x/%Y/%m/t-%H", "/x/%Y"),
            ("t-%H", "t-%H"),
            ("%Y/t", "%Y"),
            ("/var/t", "/var/t"),
        ] {
            assert_eq!(place(Path::new(file)), Path::new(expected), "{file}");
        }
    }
}
