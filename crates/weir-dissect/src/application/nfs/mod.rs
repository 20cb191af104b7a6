//! NFS versions 2 and 3 (RFC 1094, RFC 1813) over ONC RPC (RFC 5531).

mod reply;

pub(crate) use reply::Calls;

use std::net::IpAddr;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::segment::Segment;
use crate::base::text::put;

const PORT: u16 = 2049;
const CALL: u32 = 0;
const REPLY: u32 = 1;
/// Length of the header of a call, before the credentials.
const CALL_HEADER: usize = 24;
/// Length of the header of an accepted reply, before the verifier.
const REPLY_HEADER: usize = 12;
const BLOCK_DEVICE: u32 = 3;
const CHARACTER_DEVICE: u32 = 4;
/// Length of a file handle in version 2.
const HANDLE2: usize = 32;
/// Marks the last fragment of a record over TCP.
const LAST: u32 = 0x8000_0000;

/// Names of the procedures of version 3.
const NAMES: [&str; 22] = [
    "null",
    "getattr",
    "setattr",
    "lookup",
    "access",
    "readlink",
    "read",
    "write",
    "create",
    "mkdir",
    "symlink",
    "mknod",
    "remove",
    "rmdir",
    "rename",
    "link",
    "readdir",
    "readdirplus",
    "fsstat",
    "fsinfo",
    "pathconf",
    "commit",
];
/// Stands for procedures of version 2 that were obsolete already.
const OBSOLETE: usize = 26;
/// Numbers in version 3 of the procedures of version 2.
const VERSION2: [usize; 18] = [0, 1, 2, OBSOLETE, 3, 5, 6, OBSOLETE, 7, 8, 12, 14, 15, 10, 9, 13, 16, 18];
const ACCESS: [&str; 6] = ["READ", "LOOKUP", "MODIFY", "EXTEND", "DELETE", "EXECUTE"];

/// Returns whether it is a call to the server's port; `None` if it is neither that nor a reply from it.
fn direction(segment: &Segment<'_>, bytes: Bytes<'_>) -> Option<bool> {
    match bytes.u32(4).ok()? {
        CALL if segment.destination == PORT => Some(true),
        REPLY if segment.source == PORT => Some(false),
        _ => None,
    }
}

/// Returns whether it is a message in a datagram, of whose checksum tcpdump says nothing.
pub(crate) fn is_datagram(segment: &Segment<'_>) -> bool {
    !segment.is_tcp() && direction(segment, segment.payload).is_some()
}

/// A position in arguments, which are all multiples of four bytes (XDR, RFC 4506).
struct Arguments<'a> {
    bytes: Bytes<'a>,
    version: u32,
}

impl<'a> Arguments<'a> {
    fn u32(&mut self) -> Result<u32, Cut> {
        let value = self.bytes.u32(0)?;
        self.bytes = self.bytes.from(4);
        Ok(value)
    }

    fn u64(&mut self) -> Result<u64, Cut> {
        Ok(u64::from(self.u32()?) << 32 | u64::from(self.u32()?))
    }

    fn opaque(&mut self, len: usize) -> Result<&'a [u8], Cut> {
        let padded = len.checked_next_multiple_of(4).ok_or(Cut)?;
        let value = self.bytes.get(0, padded)?;
        self.bytes = self.bytes.from(padded);
        Ok(&value[..len])
    }

    fn variable(&mut self) -> Result<&'a [u8], Cut> {
        let len = self.u32()? as usize;
        self.opaque(len)
    }
}

/// The attributes that a new file gets, in version 3.
#[derive(Default)]
struct SetAttributes {
    mode: Option<u32>,
    user: Option<u32>,
    group: Option<u32>,
    /// Seconds and nanoseconds.
    accessed: Option<(u32, u32)>,
    modified: Option<(u32, u32)>,
}

impl SetAttributes {
    fn read(arguments: &mut Arguments<'_>) -> Result<Self, Cut> {
        let mut number = || Ok(if arguments.u32()? != 0 { Some(arguments.u32()?) } else { None });
        let (mode, user, group) = (number()?, number()?, number()?);
        if arguments.u32()? != 0 {
            // tcpdump takes a size for four bytes long.
            arguments.u64()?;
        }
        // 1 is the server's time.
        let mut time =
            || Ok(if arguments.u32()? == 2 { Some((arguments.u32()?, arguments.u32()?)) } else { None });
        Ok(Self { mode, user, group, accessed: time()?, modified: time()? })
    }
}

impl Printer<'_> {
    /// Prints a call to the server's port, or a reply from it.
    pub(crate) fn nfs(&mut self, segment: Segment<'_>) -> Result<(), Cut> {
        let mut bytes = segment.payload;
        if segment.is_tcp() {
            // Only a record at the start of a segment is read.
            let Ok(mark) = bytes.u32(0) else { return Ok(()) };
            bytes = bytes.from(4).first((mark & !LAST) as usize);
        }
        let Some(call) = direction(&segment, bytes) else {
            if !segment.is_tcp() {
                put!(self, "UDP, length {}", bytes.len);
            }
            return Ok(());
        };
        self.protocol = "nfs";
        self.facts.protocol = Some("nfs");
        if segment.is_tcp() {
            self.text(": ");
        }
        put!(self, "NFS {} xid {} ", if call { "request" } else { "reply" }, bytes.u32(0)?);
        let (source, destination) = (segment.around.source, segment.around.destination);
        match call {
            true => self.nfs_call((source, destination), bytes),
            false => self.nfs_reply((destination, source), bytes),
        }
    }

    /// `ends`: client and server.
    fn nfs_reply(&mut self, ends: (IpAddr, IpAddr), bytes: Bytes<'_>) -> Result<(), Cut> {
        const REASONS: [&str; 8] = [
            "OK",
            "Bogus Credentials (seal broken)",
            "Rejected Credentials (client should begin new session)",
            "Bogus Verifier (seal broken)",
            "Verifier expired or was replayed",
            "Credentials are too weak",
            "Bogus response verifier",
            "Unknown failure",
        ];
        if bytes.u32(8)? == 0 {
            put!(self, "reply ok {}", bytes.len);
            let Some((version, number)) = self.calls.find(bytes.u32(0)?, ends) else { return Ok(()) };
            return self.nfs_result(version, number, bytes.from(REPLY_HEADER));
        }
        put!(self, "reply ERR {}: ", bytes.len);
        if bytes.u32(12)? == 0 {
            put!(self, "RPC Version mismatch ({}-{})", bytes.u32(16)?, bytes.u32(20)?);
            return Ok(());
        }
        let reason = bytes.u32(16)?;
        match REASONS.get(reason as usize) {
            Some(name) => put!(self, "Auth {name}"),
            None => put!(self, "Auth Invalid failure code {reason}"),
        }
        Ok(())
    }

    /// `ends`: client and server.
    fn nfs_call(&mut self, ends: (IpAddr, IpAddr), bytes: Bytes<'_>) -> Result<(), Cut> {
        put!(self, "{}", bytes.len);
        let (version, procedure) = (bytes.u32(16)?, bytes.u32(20)? as usize);
        let number = match version {
            3 => procedure,
            _ => VERSION2.get(procedure).copied().unwrap_or_else(|| procedure.max(OBSOLETE)),
        };
        self.text(" ");
        self.nfs_procedure(number);
        self.calls.remember(bytes.u32(0)?, ends, version, number);
        let Some(name) = NAMES.get(number) else { return Ok(()) };
        if *name == "null" {
            return Ok(());
        }
        // Credentials and verifier: a kind, a length, and as many bytes.
        let mut rest = bytes.from(CALL_HEADER);
        for what in ["credentials", "verifier"] {
            let len = rest.u32(4)? as usize;
            if len > rest.len {
                put!(self, " [{what} length {len} > {}] (invalid)", rest.len);
                return Err(Cut);
            }
            rest.get(8, len.next_multiple_of(4))?;
            rest = rest.from(8 + len.next_multiple_of(4));
        }
        let mut arguments = Arguments { bytes: rest, version };
        match *name {
            "access" => {
                self.nfs_handle(&mut arguments)?;
                self.nfs_access(arguments.u32()?);
                Ok(())
            }
            "lookup" | "create" | "mkdir" | "remove" | "rmdir" => self.nfs_entry(&mut arguments),
            "symlink" => {
                self.nfs_entry(&mut arguments)?;
                self.nfs_target(&mut arguments)
            }
            "mknod" => {
                self.nfs_entry(&mut arguments)?;
                self.nfs_device(&mut arguments)
            }
            "rename" => {
                self.nfs_entry(&mut arguments)?;
                self.text(" ->");
                self.nfs_entry(&mut arguments)
            }
            "link" => {
                self.nfs_handle(&mut arguments)?;
                self.text(" ->");
                self.nfs_entry(&mut arguments)
            }
            name => {
                self.nfs_handle(&mut arguments)?;
                self.nfs_range(name, &mut arguments)
            }
        }
    }

    /// Prints the name of a procedure, by its number in version 3.
    fn nfs_procedure(&mut self, number: usize) {
        match NAMES.get(number) {
            Some(name) => self.text(name),
            None if number == OBSOLETE => self.text("nop"),
            None => put!(self, "proc-{number}"),
        }
    }

    /// Prints how much is read or written where, if it is one of those procedures.
    fn nfs_range(&mut self, name: &str, arguments: &mut Arguments<'_>) -> Result<(), Cut> {
        let three = arguments.version == 3;
        match name {
            "read" | "commit" if three => {
                let offset = arguments.u64()?;
                put!(self, " {} bytes @ {offset}", arguments.u32()?);
            }
            "read" => {
                let offset = arguments.u32()?;
                put!(self, " {} bytes @ {offset}", arguments.u32()?);
            }
            "write" if three => {
                let offset = arguments.u64()?;
                let count = arguments.u32()?;
                let stable = arguments.u32()?;
                put!(self, " {} ({count}) bytes @ {offset}", arguments.u32()?);
                if self.options.verbose > 0 {
                    self.nfs_stability(stable);
                }
            }
            "write" => {
                let (first, offset, total) = (arguments.u32()?, arguments.u32()?, arguments.u32()?);
                put!(self, " {} ({total}) bytes @ {offset} ({first})", arguments.u32()?);
            }
            "readdir" if !three => {
                let offset = arguments.u32()?;
                put!(self, " {} bytes @ {offset}", arguments.u32()?);
            }
            "readdir" | "readdirplus" => {
                let offset = arguments.u64()?;
                let (verifier, count) = (arguments.u64()?, arguments.u32()?);
                put!(self, " {count} bytes @ {}", offset.cast_signed());
                if self.options.verbose > 0 {
                    if name == "readdirplus" {
                        put!(self, " max {}", arguments.u32()?);
                    }
                    put!(self, " verf {verifier:016x}");
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn nfs_access(&mut self, bits: u32) {
        match bits {
            0x3f => self.text(" NFS_ACCESS_FULL"),
            0x40.. => put!(self, " {bits:04x}"),
            _ => {
                let mut before = " NFS_ACCESS_";
                for (bit, name) in ACCESS.into_iter().enumerate() {
                    if bits >> bit & 1 != 0 {
                        put!(self, "{before}{name}");
                        before = "|NFS_ACCESS_";
                    }
                }
            }
        }
    }

    /// Prints a directory and a name in it.
    fn nfs_entry(&mut self, arguments: &mut Arguments<'_>) -> Result<(), Cut> {
        self.nfs_handle(arguments)?;
        self.nfs_quoted(arguments)
    }

    /// Prints where a symbolic link leads.
    fn nfs_target(&mut self, arguments: &mut Arguments<'_>) -> Result<(), Cut> {
        self.text(" ->");
        let set =
            if arguments.version == 3 { SetAttributes::read(arguments)? } else { SetAttributes::default() };
        let target = arguments.variable()?;
        self.text("\"");
        self.harmless(target);
        self.text("\"");
        self.nfs_set(&set);
        Ok(())
    }

    /// Prints the kind of a device and its numbers.
    fn nfs_device(&mut self, arguments: &mut Arguments<'_>) -> Result<(), Cut> {
        let kind = arguments.u32()?;
        let set = SetAttributes::read(arguments)?;
        match reply::kind(kind) {
            Some(name) => put!(self, " {name}"),
            None => put!(self, " unk-ft {kind}"),
        }
        if self.options.verbose > 0 && matches!(kind, BLOCK_DEVICE | CHARACTER_DEVICE) {
            let (major, minor) = (arguments.u32()?, arguments.u32()?);
            put!(self, " {major}/{minor}");
        }
        self.nfs_set(&set);
        Ok(())
    }

    fn nfs_set(&mut self, set: &SetAttributes) {
        if self.options.verbose > 0 {
            if let Some(mode) = set.mode {
                put!(self, " mode {mode:o}");
            }
            for (name, value) in [("uid", set.user), ("gid", set.group)] {
                if let Some(value) = value {
                    put!(self, " {name} {value}");
                }
            }
        }
        if self.options.verbose > 1 {
            for (name, time) in [("atime", set.accessed), ("mtime", set.modified)] {
                if let Some((seconds, fraction)) = time {
                    put!(self, " {name} {seconds}.{fraction:06}");
                }
            }
        }
    }

    fn nfs_handle(&mut self, arguments: &mut Arguments<'_>) -> Result<(), Cut> {
        let handle = match arguments.version {
            2 => arguments.opaque(HANDLE2)?,
            _ => arguments.variable()?,
        };
        self.text(" fh Unknown/");
        handle.iter().for_each(|byte| put!(self, "{byte:02X}"));
        Ok(())
    }
}
