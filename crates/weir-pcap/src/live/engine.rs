//! What captures: a packet socket, or weir's pool.

use std::env;
use std::ffi::{CStr, CString, OsString};
use std::ops::RangeInclusive;

use weir::parts::split_name;
use weir::{Mode, SourceChoice};

use super::device::Device;
use super::report::Report;
use crate::privileged;

/// What a user wants of the engine, by the name of the device or by the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// `None`: the packet socket.
    pub(super) source: Option<SourceChoice>,
    pub(super) mode: Mode,
    /// Exclusive mode may cut off addresses of this host.
    pub(super) force: bool,
    /// Chunks per queue.
    pub(super) chunks: Option<u32>,
    /// Print a line when the capture ends.
    pub(super) report: Option<Report>,
    /// The name of the device alone.
    pub(super) device: CString,
    /// Its receive queues; `None`: all.
    pub(super) queues: Option<RangeInclusive<u32>>,
}

impl Wish {
    /// Reads `SOURCE:DEVICE`, or `SOURCE!:DEVICE` for exclusive mode, with `@0-3` behind it for some receive queues, and what the environment says of the rest:
    /// `WEIR_SOURCE`, `WEIR_MODE`, `WEIR_FORCE`, `WEIR_CHUNKS`, `WEIR_REPORT`. For a program with more rights than its user, the
    /// environment is not read, and the name may only ask for what a packet socket does.
    ///
    /// # Errors
    ///
    /// A value has no meaning, or the user must not ask for it; the text says what it may be.
    pub(super) fn of(device: &CStr) -> Result<Self, String> {
        let privileged = privileged::is();
        Self::read(device, privileged, Device::exists, |name| env::var_os(name).filter(|_| !privileged))
    }

    fn read(
        device: &CStr,
        privileged: bool,
        exists: impl Fn(&CStr) -> bool,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, String> {
        let variable = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
        let mode = match variable("WEIR_MODE").as_deref() {
            None | Some("" | "pass") => Mode::Pass,
            Some("exclusive") => Mode::Exclusive,
            Some(other) => {
                return Err(format!("cannot use WEIR_MODE={other}: no such mode; try pass or exclusive"));
            }
        };
        let chunks = variable("WEIR_CHUNKS").filter(|text| !text.is_empty()).map(|text| {
            let number = text.parse().ok().filter(|&chunks| chunks >= 2);
            number.ok_or_else(|| format!("cannot use WEIR_CHUNKS={text}: not a number of at least 2"))
        });
        let source = variable("WEIR_SOURCE").filter(|text| !text.is_empty()).map(|text| {
            source_named(&text)
                .ok_or_else(|| format!("cannot use WEIR_SOURCE={text}: no such source; try {}", names()))
        });
        let mut wish = Self {
            source: source.transpose()?.flatten(),
            mode,
            force: variable("WEIR_FORCE").is_some_and(|text| text == "1"),
            chunks: chunks.transpose()?,
            report: variable("WEIR_REPORT").as_deref().and_then(Report::read),
            device: device.to_owned(),
            queues: None,
        };
        wish.read_source();
        wish.read_queues(exists);
        let asks = wish.source.is_some() || wish.mode != Mode::Pass || wish.queues.is_some();
        if privileged && asks {
            let (name, device) = (device.to_string_lossy(), wish.device.to_string_lossy());
            return Err(format!(
                "cannot capture on {name}: this program has more privileges than its user, who must not choose \
                 a source, exclusive mode or queues; try {device}"
            ));
        }
        Ok(wish)
    }

    /// Takes the source off the name. An alias of an interface has a colon in its name, too, but no source in front of it.
    fn read_source(&mut self) {
        let text = self.device.to_bytes();
        let Some(colon) = text.iter().position(|&byte| byte == b':') else { return };
        let (front, rest) = (String::from_utf8_lossy(&text[..colon]), &text[colon + 1..]);
        let (name, exclusive) = match front.strip_suffix('!') {
            Some(name) => (name, true),
            None => (&*front, false),
        };
        if let Some(source) = source_named(name) {
            self.source = source;
            self.mode = if exclusive { Mode::Exclusive } else { self.mode };
            self.device = CString::new(rest).unwrap_or_default();
        }
    }

    /// Takes the queues off the name, unless there is a device called so.
    fn read_queues(&mut self, exists: impl Fn(&CStr) -> bool) {
        if let Some((name, queues)) = self.device.to_str().ok().and_then(split_name)
            && !exists(&self.device)
        {
            (self.queues, self.device) = (Some(queues), CString::new(name).unwrap_or_default());
        }
    }
}

/// The sources by name; `None`: the packet socket.
const SOURCES: [(&str, Option<SourceChoice>); 6] = [
    ("auto", Some(SourceChoice::Auto)),
    ("xdp", Some(SourceChoice::Xdp)),
    ("tc", Some(SourceChoice::Tc)),
    ("xdp+tc", Some(SourceChoice::XdpTc)),
    ("af_xdp", Some(SourceChoice::AfXdp)),
    ("af_packet", None),
];

fn source_named(name: &str) -> Option<Option<SourceChoice>> {
    SOURCES.iter().find(|(known, _)| *known == name).map(|(_, source)| *source)
}

fn names() -> String {
    SOURCES.map(|(name, _)| name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(device: &CStr, variables: &[(&str, &str)]) -> Result<Wish, String> {
        let exists = |name: &CStr| name == c"there@1";
        Wish::read(device, false, exists, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
        })
    }

    fn plain() -> Wish {
        let device = c"eth0".to_owned();
        Wish {
            source: None,
            mode: Mode::Pass,
            force: false,
            chunks: None,
            report: None,
            device,
            queues: None,
        }
    }

    #[test]
    fn queues_are_behind_the_device_unless_it_is_called_so() {
        let xdp = Wish { source: Some(SourceChoice::Xdp), queues: Some(0..=3), ..plain() };
        assert_eq!(read(c"xdp:eth0@0-3", &[]), Ok(xdp.clone()));
        assert_eq!(read(c"eth0@0-3", &[("WEIR_SOURCE", "xdp")]), Ok(xdp.clone()));
        let one = Wish { mode: Mode::Exclusive, queues: Some(2..=2), ..xdp };
        assert_eq!(read(c"xdp!:eth0@2", &[]), Ok(one.clone()));
        let there = Wish { queues: None, device: c"there@1".to_owned(), ..one.clone() };
        assert_eq!(read(c"xdp!:there@1", &[]), Ok(there));
        let other = Wish { queues: None, device: c"eth0@if5".to_owned(), ..one };
        assert_eq!(read(c"xdp!:eth0@if5", &[]), Ok(other));
    }

    #[test]
    fn the_device_comes_before_the_environment() {
        let plain = plain();
        assert_eq!(read(c"eth0", &[]), Ok(plain.clone()));
        assert_eq!(read(c"eth0", &[("WEIR_SOURCE", ""), ("WEIR_REPORT", "0")]), Ok(plain.clone()));
        let xdp = Wish { source: Some(SourceChoice::Xdp), ..plain.clone() };
        assert_eq!(read(c"xdp:eth0", &[("WEIR_SOURCE", "tc")]), Ok(xdp.clone()));
        assert_eq!(read(c"eth0", &[("WEIR_SOURCE", "xdp")]), Ok(xdp.clone()));
        assert_eq!(read(c"xdp!:eth0", &[]), Ok(Wish { mode: Mode::Exclusive, ..xdp.clone() }));
        let all = [
            ("WEIR_SOURCE", "xdp"),
            ("WEIR_MODE", "exclusive"),
            ("WEIR_FORCE", "1"),
            ("WEIR_CHUNKS", "9"),
            ("WEIR_REPORT", "1"),
        ];
        let wish =
            Wish { mode: Mode::Exclusive, force: true, chunks: Some(9), report: Some(Report::Here), ..xdp };
        assert_eq!(read(c"eth0", &all), Ok(wish));
        let alias = Wish { device: c"eth0:1".to_owned(), ..plain.clone() };
        assert_eq!(read(c"eth0:1", &[]), Ok(alias));
        assert_eq!(read(c"af_packet:eth0", &[("WEIR_SOURCE", "xdp")]), Ok(plain));
    }

    #[test]
    fn users_of_privileged_programs_get_a_packet_socket() {
        let read = |device| Wish::read(device, true, |name| name == c"there@1", |_| None);
        for device in [c"xdp!:eth0", c"af_packet!:eth0", c"tc:eth0", c"auto:eth0", c"eth0@0", c"xdp!:eth0@2"]
        {
            let error = read(device).expect_err("too much");
            assert!(error.ends_with("; try eth0"), "{error}");
        }
        for device in [c"eth0", c"eth0:1", c"there@1"] {
            assert_eq!(read(device), Ok(Wish { device: device.to_owned(), ..plain() }));
        }
        assert_eq!(read(c"af_packet:eth0"), Ok(plain()));
    }

    #[test]
    fn nonsense_is_named() {
        for (name, value) in
            [("WEIR_SOURCE", "dpdk"), ("WEIR_MODE", "both"), ("WEIR_CHUNKS", "1"), ("WEIR_CHUNKS", "x")]
        {
            let error = read(c"eth0", &[(name, value)]).expect_err("nonsense");
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }
}
