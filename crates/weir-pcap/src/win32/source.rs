//! Source strings: `file://PATH`, `rpcap://DEVICE` for a device of this host, and `rpcap://HOST:PORT/DEVICE` for one of
//! another.

use std::ffi::{c_char, c_int};

use crate::abi::PCAP_ERROR;
use crate::guard::{BUG, caught, guard, tell, word};

/// Size of the buffers for source strings and their parts.
const PCAP_BUF_SIZE: usize = 1024;

const PCAP_SRC_FILE: c_int = 2;
const PCAP_SRC_IFLOCAL: c_int = 3;
const PCAP_SRC_IFREMOTE: c_int = 4;

/// Where packets come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceLocation<'a> {
    File(&'a [u8]),
    /// A device of this host; empty: the first.
    Local(&'a [u8]),
    Remote {
        host: &'a [u8],
        port: &'a [u8],
        name: &'a [u8],
    },
}

impl<'a> SourceLocation<'a> {
    /// Reads a source string. Without a scheme, it is the name of a device.
    pub(super) fn parse(source: &'a [u8]) -> Result<Self, String> {
        if source.len() >= PCAP_BUF_SIZE {
            return Err(format!("cannot use a source of {} bytes: too long", source.len()));
        }
        let Some(colon) = source.windows(3).position(|three| three == b"://") else {
            return Ok(Self::Local(source));
        };
        let (scheme, rest) = (&source[..colon], &source[colon + 3..]);
        if scheme.eq_ignore_ascii_case(b"file") {
            return Ok(Self::File(rest));
        }
        if !["rpcap", "rpcaps"].iter().any(|known| scheme.eq_ignore_ascii_case(known.as_bytes())) {
            let scheme = String::from_utf8_lossy(scheme);
            return Err(format!("cannot use {scheme}:// as a source; try file:// or rpcap://"));
        }
        let Some(slash) = rest.iter().position(|&byte| byte == b'/') else { return Ok(Self::Local(rest)) };
        let (at, name) = (&rest[..slash], &rest[slash + 1..]);
        let (host, port) = match at.strip_prefix(b"[") {
            Some(inside) => {
                let end = inside.iter().position(|&byte| byte == b']');
                let (host, behind) =
                    end.map(|end| (&inside[..end], &inside[end + 1..])).ok_or_else(|| {
                        format!("cannot use the host {}: no closing bracket", String::from_utf8_lossy(at))
                    })?;
                (host, behind)
            }
            None => at.split_at(at.iter().position(|&byte| byte == b':').unwrap_or(at.len())),
        };
        let port = match port {
            [] => port,
            [b':', port @ ..] if !port.is_empty() => port,
            _ => return Err(format!("cannot use the host {}: no port", String::from_utf8_lossy(at))),
        };
        match host {
            [] if port.is_empty() => Ok(Self::Local(name)),
            [] => Err(format!("cannot use the port {}: no host", String::from_utf8_lossy(port))),
            _ => Ok(Self::Remote { host, port, name }),
        }
    }

    /// Writes a source string.
    pub(super) fn print(self) -> Vec<u8> {
        match self {
            Self::File(name) => [b"file://", name].concat(),
            Self::Local(name) => [b"rpcap://", name].concat(),
            Self::Remote { host, port, name } => {
                let (open, close): (&[u8], &[u8]) =
                    if host.contains(&b':') { (b"[", b"]") } else { (b"", b"") };
                let colon: &[u8] = if port.is_empty() { b"" } else { b":" };
                [b"rpcap://", open, host, close, colon, port, b"/", name].concat()
            }
        }
    }
}

/// Writes a source string of its parts into `source`, which has room for `PCAP_BUF_SIZE` bytes. Returns 0, or -1 with a
/// text in `error`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_createsrcstr(
    source: *mut c_char,
    kind: c_int,
    host: *const c_char,
    port: *const c_char,
    name: *const c_char,
    error: *mut c_char,
) -> c_int {
    // SAFETY: C1.
    let [host, port, name] =
        [host, port, name].map(|part| unsafe { word(part) }.unwrap_or_default().to_bytes());
    let make = || {
        let place = match (kind, host, name) {
            _ if source.is_null() => return Err("A null pointer was supplied for the source".to_owned()),
            (PCAP_SRC_FILE, _, []) => return Err("The name of the file is missing".to_owned()),
            (PCAP_SRC_IFREMOTE, [], _) => return Err("The name of the host is missing".to_owned()),
            (PCAP_SRC_FILE, ..) => SourceLocation::File(name),
            (PCAP_SRC_IFLOCAL, ..) => SourceLocation::Local(name),
            (PCAP_SRC_IFREMOTE, ..) => SourceLocation::Remote { host, port, name },
            _ => return Err(format!("cannot make a source of type {kind}: there is no such type")),
        };
        let made = place.print();
        if made.len() >= PCAP_BUF_SIZE {
            return Err(format!("cannot make a source of {} bytes: too long", made.len()));
        }
        // SAFETY: C1, and not null.
        unsafe { put(source, &made) };
        Ok(())
    };
    // SAFETY: C1.
    unsafe { told(make, error) }
}

/// Takes a source string apart. Each of `kind` and the buffers, of `PCAP_BUF_SIZE` bytes, may be null. Returns 0, or -1
/// with a text in `error`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_parsesrcstr(
    source: *const c_char,
    kind: *mut c_int,
    host: *mut c_char,
    port: *mut c_char,
    name: *mut c_char,
    error: *mut c_char,
) -> c_int {
    // SAFETY: C1.
    let source = unsafe { word(source) };
    let parse = || {
        let source = source.ok_or("A null pointer was supplied as the source")?;
        let (number, parts) = match SourceLocation::parse(source.to_bytes())? {
            SourceLocation::File(name) => (PCAP_SRC_FILE, [&[], &[], name]),
            SourceLocation::Local(name) => (PCAP_SRC_IFLOCAL, [&[], &[], name]),
            SourceLocation::Remote { host, port, name } => (PCAP_SRC_IFREMOTE, [host, port, name]),
        };
        if !kind.is_null() {
            // SAFETY: C1, and not null.
            unsafe { kind.write(number) };
        }
        for (buffer, part) in [host, port, name].into_iter().zip(parts) {
            // SAFETY: C1; a part is shorter than the source.
            unsafe { put(buffer, part) };
        }
        Ok(())
    };
    // SAFETY: C1.
    unsafe { told(parse, error) }
}

/// Runs a function of the library: returns what C gets, and fills its error buffer.
///
/// # Safety
///
/// As for [`tell`].
pub(super) unsafe fn told(body: impl FnOnce() -> Result<(), String>, error: *mut c_char) -> c_int {
    guard(PCAP_ERROR, || {
        let Err(text) = caught(Err(BUG.to_owned()), body) else { return 0 };
        // SAFETY: the caller's promise.
        unsafe { tell(error, &text) };
        PCAP_ERROR
    })
}

/// Writes a text of fewer than [`PCAP_BUF_SIZE`] bytes into a buffer, unless that is null.
///
/// # Safety
///
/// The buffer is null or has room for as many bytes.
unsafe fn put(buffer: *mut c_char, text: &[u8]) {
    if buffer.is_null() {
        return;
    }
    // SAFETY: the caller's promise; nobody else has `text`.
    unsafe { std::ptr::copy(text.as_ptr().cast(), buffer, text.len()) };
    // SAFETY: as above.
    let end = unsafe { buffer.add(text.len()) };
    // SAFETY: the text is shorter than the buffer.
    unsafe { end.write(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_and_written() {
        let remote = |host, port, name| SourceLocation::Remote { host, port, name };
        let round: [(&[u8], SourceLocation<'_>); 7] = [
            (b"file:///a/b c.pcap", SourceLocation::File(b"/a/b c.pcap")),
            (b"rpcap://eth0", SourceLocation::Local(b"eth0")),
            (b"rpcap://", SourceLocation::Local(b"")),
            (b"rpcap://a.example/eth0", remote(b"a.example", b"", b"eth0")),
            (b"rpcap://10.0.0.1:2002/", remote(b"10.0.0.1", b"2002", b"")),
            (b"rpcap://[1:2::3]/eth0", remote(b"1:2::3", b"", b"eth0")),
            (b"rpcap://[1:2::3]:http/eth0", remote(b"1:2::3", b"http", b"eth0")),
        ];
        for (text, place) in round {
            assert_eq!(SourceLocation::parse(text), Ok(place));
            assert_eq!(place.print(), text);
        }
        for (text, place) in [
            (&b"eth0:1"[..], SourceLocation::Local(b"eth0:1")),
            (b"xdp!:eth0", SourceLocation::Local(b"xdp!:eth0")),
            (b"RPCAPS:///eth0", SourceLocation::Local(b"eth0")),
            (b"rpcap://[10.0.0.1]:7/e", remote(b"10.0.0.1", b"7", b"e")),
        ] {
            assert_eq!(SourceLocation::parse(text), Ok(place));
        }
        for wrong in
            ["http://a/", "rpcap://[1::2/eth0", "rpcap://a:/eth0", "rpcap://:7/eth0", "rpcap://[1]7/e"]
        {
            SourceLocation::parse(wrong.as_bytes()).expect_err(wrong);
        }
        SourceLocation::parse(&[b'a'; PCAP_BUF_SIZE]).expect_err("too long");
    }
}
