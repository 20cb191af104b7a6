//! A directory for files of flows, as the command line says it: `file:DIR?every=1h`.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use weir_columns::Columns;

use crate::units;

/// A file has the flows of this time, unless told otherwise.
const EVERY: Duration = Duration::from_secs(300);
/// The shortest and the longest time.
const ALLOWED: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(24 * 3600)];

/// How flows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, a line for each.
    Lines,
    /// The same, compressed.
    Zstd,
    Parquet(Columns),
}

/// Where files of flows go, and what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folder {
    /// Without the options.
    pub(super) directory: PathBuf,
    pub(super) format: Format,
    /// Another file begins whenever the clock reaches a multiple of this.
    pub(super) every: Duration,
    /// The name of this sensor; `None`: that of the host.
    sensor: Option<String>,
    /// As the user wrote it.
    text: String,
}

/// What can be in the name of a folder everywhere, in an object store, too.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.')
}

impl FromStr for Folder {
    type Err = String;

    /// Reads what follows `file:`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (place, options) = text.rsplit_once('?').unwrap_or((text, ""));
        // `file:///DIR`, as URLs have it.
        let directory = place.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(place);
        if directory.is_empty() || directory.starts_with("//") {
            return Err("allowed: file:DIR, such as file:/var/lib/weir/flows?every=1h".to_owned());
        }
        let (mut format, mut compression, mut columns, mut every, mut sensor) =
            ("json", None, None, EVERY, None);
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("format", value @ ("json" | "parquet"))) => format = value,
                Some(("compress", value @ ("zstd" | "none"))) => compression = Some(value),
                Some(("columns", "all")) => columns = Some(Columns::All),
                Some(("columns", "basic")) => columns = Some(Columns::Basic),
                Some(("every", value)) => {
                    every = units::duration(value).map_err(|error| format!("every={value}: {error}"))?;
                    if every < ALLOWED[0] || every > ALLOWED[1] {
                        return Err(format!("every={value}: allowed: 1s to 24h"));
                    }
                }
                Some(("sensor", value)) if !value.is_empty() && value.chars().all(is_plain) => {
                    sensor = Some(value.to_owned());
                }
                Some(("sensor", value)) => {
                    return Err(format!("sensor={value}: allowed: letters, digits, '-', '_' and '.'"));
                }
                _ => {
                    let allowed = "format=json, format=parquet, columns=basic, compress=zstd, every=TIME and sensor=NAME, with '&' between them";
                    return Err(format!("{option}: allowed: {allowed}"));
                }
            }
        }
        let format = match (format, compression) {
            ("parquet", Some("none")) => {
                return Err("compress=none: files of Parquet are always compressed".to_owned());
            }
            ("parquet", _) => Format::Parquet(columns.unwrap_or(Columns::All)),
            _ if columns.is_some() => {
                return Err("columns: files of JSON have everything; try format=parquet".to_owned());
            }
            (_, Some("zstd")) => Format::Zstd,
            _ => Format::Lines,
        };
        Ok(Self { directory: directory.into(), format, every, sensor, text: format!("file:{text}") })
    }
}

impl Display for Folder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Folder {
    /// Returns the name of this sensor.
    pub(super) fn sensor(&self) -> String {
        let host = || {
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            let host: String =
                host.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
            if host.is_empty() { "localhost".to_owned() } else { host }
        };
        self.sensor.clone().unwrap_or_else(host)
    }

    /// Returns the name of a file that begins now, within the directory, and how long it gets flows. `number`: which file of
    /// this run it is.
    pub(super) fn name(&self, sensor: &str, number: u64, now: Timestamp) -> (PathBuf, Duration) {
        let end = match self.format {
            Format::Lines => "jsonl",
            Format::Zstd => "jsonl.zst",
            Format::Parquet(_) => "parquet",
        };
        let day = now.strftime("day=%Y-%m-%d/hour=%H/flows-%Y%m%dT%H%M%SZ");
        let name = format!("sensor={sensor}/{day}-{}-{number}.{end}", std::process::id());
        let every = self.every.as_nanos();
        let since = u128::try_from(now.as_nanosecond()).unwrap_or(0) % every;
        let left = u64::try_from(every - since).map_or(self.every, Duration::from_nanos);
        (name.into(), left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_options() {
        let parsed = |text: &str| text.parse::<Folder>();
        for (text, directory) in
            [("flows", "flows"), ("/a/b", "/a/b"), ("///a/b?every=60s", "/a/b"), ("a?b?format=json", "a?b")]
        {
            let folder = parsed(text).expect("a directory");
            assert_eq!((folder.directory.to_str(), folder.format), (Some(directory), Format::Lines));
            assert_eq!(folder.to_string(), format!("file:{text}"));
        }
        let folder = parsed("x?compress=zstd&every=1h&sensor=tap-1.example").expect("a directory");
        assert_eq!((folder.format, folder.every), (Format::Zstd, Duration::from_secs(3600)));
        assert_eq!(folder.sensor(), "tap-1.example");
        for (options, columns) in
            [("", Columns::All), ("&columns=all", Columns::All), ("&columns=basic", Columns::Basic)]
        {
            let folder = parsed(&format!("x?format=parquet{options}"));
            assert_eq!(folder.map(|folder| folder.format), Ok(Format::Parquet(columns)));
        }
        for (text, told) in [
            ("", "allowed: file:DIR"),
            ("//host/a", "allowed: file:DIR"),
            ("a?every=0s", "every=0s"),
            ("a?every=25h", "allowed: 1s to 24h"),
            ("a?every=soon", "every=soon"),
            ("a?format=csv", "format=csv: allowed: format=json"),
            ("a?columns=basic", "columns: files of JSON have everything"),
            ("a?format=parquet&columns=few", "columns=few: allowed: format=json"),
            ("a?sensor=a/b", "sensor=a/b: allowed: letters"),
            ("a?sensor=", "sensor=: allowed"),
            ("a?compress", "compress: allowed"),
            ("a?format=parquet&compress=none", "always compressed"),
        ] {
            let error = parsed(text).expect_err("it is wrong");
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn files_end_when_the_clock_says_so() {
        let folder = "x?every=5m&sensor=s".parse::<Folder>().expect("a directory");
        let now = "2026-11-30T23:58:59.5Z".parse().expect("a time");
        let (name, left) = folder.name("s", 3, now);
        let expected =
            format!("sensor=s/day=2026-11-30/hour=23/flows-20261130T235859Z-{}-3.jsonl", std::process::id());
        assert_eq!((name.to_str(), left), (Some(&*expected), Duration::from_millis(60_500)));
    }
}
