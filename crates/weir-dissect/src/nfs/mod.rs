//! NFS versions 2 and 3 (RFC 1094, RFC 1813) over ONC RPC (RFC 5531).

mod reply;

pub(crate) use reply::Calls;

use std::net::IpAddr;

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::segment::Segment;
use crate::text::put;

const PORT: u16 = 2049;
const CALL: u32 = 0;
const REPLY: u32 = 1;
/// Length of the header of a call, before the credentials.
const CALL_HEADER: usize = 24;
/// Length of the header of an accepted reply, without the verifier.
const REPLY_HEADER: usize = 24;
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
/// Numbers in version 3 of the procedures of version 2. Those without one are obsolete.
const VERSION2: [Option<usize>; 18] = [
    Some(0),
    Some(1),
    Some(2),
    None,
    Some(3),
    Some(5),
    Some(6),
    None,
    Some(7),
    Some(8),
    Some(12),
    Some(14),
    Some(15),
    Some(10),
    Some(9),
    Some(13),
    Some(16),
    Some(18),
];
const ACCESS: [&str; 6] = ["READ", "LOOKUP", "MODIFY", "EXTEND", "DELETE", "EXECUTE"];

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
        let value = self.bytes.get(0, len)?;
        self.bytes = self.bytes.from(len.div_ceil(4) * 4);
        Ok(value)
    }

    fn variable(&mut self) -> Result<&'a [u8], Cut> {
        let len = self.u32()? as usize;
        self.opaque(len)
    }
}

impl Printer<'_> {
    /// Prints a call to the server's port, or a reply from it.
    pub(crate) fn nfs(&mut self, segment: Segment<'_>) -> Result<(), Cut> {
        let mut bytes = segment.payload;
        if segment.tcp {
            // Only a record at the start of a segment is read.
            let Ok(mark) = bytes.u32(0) else { return Ok(()) };
            bytes = bytes.from(4).first((mark & !LAST) as usize);
        }
        let direction = bytes.u32(4).ok();
        let call = segment.destination == PORT && direction == Some(CALL);
        let reply = segment.source == PORT && direction == Some(REPLY);
        if !call && !reply {
            if !segment.tcp {
                put!(self, "UDP, length {}", bytes.len);
            }
            return Ok(());
        }
        self.protocol = "nfs";
        self.facts.protocol = Some("nfs");
        if segment.tcp {
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
            let Some((version, name)) = self.calls.find(bytes.u32(0)?, ends) else { return Ok(()) };
            // A verifier and a status come before the result.
            let verifier = bytes.u32(16)? as usize;
            let at = verifier.saturating_add(REPLY_HEADER);
            if bytes.u32(at - 4)? != 0 {
                return Ok(());
            }
            return self.nfs_result(version, name, bytes.from(at));
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
        // Credentials and verifier: a kind, a length, and as many bytes.
        let mut rest = bytes.from(CALL_HEADER);
        for _ in 0..2 {
            let len = rest.u32(4)? as usize;
            rest = rest.from(8_usize.saturating_add(len.next_multiple_of(4)));
        }
        let number = match version {
            2 => VERSION2.get(procedure).copied().flatten(),
            _ => Some(procedure).filter(|number| *number < NAMES.len()),
        };
        let Some(name) = number.and_then(|number| NAMES.get(number)) else {
            put!(self, " proc #{procedure}");
            return Ok(());
        };
        put!(self, " {name}");
        self.calls.remember(bytes.u32(0)?, ends, version, name);
        let mut arguments = Arguments { bytes: rest, version };
        match *name {
            "null" => Ok(()),
            "access" => {
                self.nfs_handle(&mut arguments)?;
                self.nfs_access(arguments.u32()?);
                Ok(())
            }
            "lookup" | "create" | "mkdir" | "remove" | "rmdir" | "mknod" => self.nfs_entry(&mut arguments),
            "symlink" => {
                self.nfs_entry(&mut arguments)?;
                self.nfs_target(&mut arguments)
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
                    match ["unstable", "dsync", "fsync"].get(stable as usize) {
                        Some(name) => put!(self, " <{name}>"),
                        None => put!(self, " <#{stable}>"),
                    }
                }
            }
            "write" => {
                arguments.u32()?;
                let (offset, total) = (arguments.u32()?, arguments.u32()?);
                put!(self, " {} ({}) bytes @ {offset} ({total})", arguments.u32()?, total);
            }
            "readdir" if !three => {
                let offset = arguments.u32()?;
                put!(self, " {} bytes @ {offset}", arguments.u32()?);
            }
            "readdir" | "readdirplus" => {
                let offset = arguments.u64()?;
                arguments.u64()?;
                put!(self, " {} bytes @ {offset}", arguments.u32()?);
                if name == "readdirplus" && self.options.verbose > 0 {
                    put!(self, " max {}", arguments.u32()?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn nfs_access(&mut self, bits: u32) {
        let mut before = " NFS_ACCESS_";
        for (bit, name) in ACCESS.into_iter().enumerate() {
            if bits >> bit & 1 != 0 {
                put!(self, "{before}{name}");
                before = "|NFS_ACCESS_";
            }
        }
    }

    /// Prints a directory and a name in it.
    fn nfs_entry(&mut self, arguments: &mut Arguments<'_>) -> Result<(), Cut> {
        self.nfs_handle(arguments)?;
        let name = arguments.variable()?;
        self.text(" \"");
        self.harmless(name);
        self.text("\"");
        Ok(())
    }

    /// Prints where a symbolic link leads. Version 3 has six attributes before it, those with a value if they are set.
    fn nfs_target(&mut self, arguments: &mut Arguments<'_>) -> Result<(), Cut> {
        if arguments.version == 3 {
            for (number, len) in [1, 1, 1, 2, 2, 2].into_iter().enumerate() {
                let set = arguments.u32()?;
                // Times may also be those of the server.
                if set != 0 && (number < 4 || set == 2) {
                    arguments.opaque(len * 4)?;
                }
            }
        }
        let target = arguments.variable()?;
        self.text(" ->\"");
        self.harmless(target);
        self.text("\"");
        Ok(())
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
