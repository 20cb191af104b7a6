//! Replies of NFS, which only their calls explain.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::{Arguments, NAMES};
use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Calls that are remembered.
const REMEMBERED: usize = 64;
/// Length of the attributes in version 3, and in version 2.
const ATTRIBUTES: usize = 84;
const ATTRIBUTES2: usize = 68;
/// Length of the attributes before a change.
const BEFORE: usize = 24;
const KINDS: [&str; 8] = ["NON", "REG", "DIR", "BLK", "CHR", "LNK", "", "FIFO"];

/// What a reply is the answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    id: u32,
    client: IpAddr,
    server: IpAddr,
    version: u32,
    /// The number of the procedure in version 3.
    number: usize,
}

/// The last calls.
#[derive(Debug, Default)]
pub(crate) struct Calls(VecDeque<Call>);

impl Calls {
    pub(super) fn remember(&mut self, id: u32, ends: (IpAddr, IpAddr), version: u32, number: usize) {
        self.0.truncate(REMEMBERED - 1);
        self.0.push_front(Call { id, client: ends.0, server: ends.1, version, number });
    }

    /// Returns version and procedure of the call from `ends.0` to `ends.1`.
    pub(super) fn find(&self, id: u32, ends: (IpAddr, IpAddr)) -> Option<(u32, usize)> {
        let call = self.0.iter().find(|call| (call.id, call.client, call.server) == (id, ends.0, ends.1))?;
        Some((call.version, call.number))
    }
}

/// What is the matter with the call itself (RFC 5531, section 9).
fn rejection(code: u32) -> Option<&'static str> {
    match code {
        1 => Some("PROG_UNAVAIL"),
        2 => Some("PROG_MISMATCH"),
        3 => Some("PROC_UNAVAIL"),
        4 => Some("GARBAGE_ARGS"),
        5 => Some("SYSTEM_ERR"),
        _ => None,
    }
}

/// Returns the name of a kind of files.
pub(super) fn kind(number: u32) -> Option<&'static str> {
    KINDS.get(number as usize).copied().filter(|name| !name.is_empty())
}

/// Returns tcpdump's words for an error (RFC 1813, section 2.6).
fn error(status: u32) -> Option<&'static str> {
    Some(match status {
        1 => "Operation not permitted",
        2 => "No such file or directory",
        5 => "Input/output error",
        6 => "Device not configured",
        11 => "Resource deadlock avoided",
        12 => "Cannot allocate memory",
        13 => "Permission denied",
        17 => "File exists",
        18 => "Cross-device link",
        19 => "Operation not supported by device",
        20 => "Not a directory",
        21 => "Is a directory",
        22 => "Invalid argument",
        27 => "File too large",
        28 => "No space left on device",
        30 => "Read-only file system",
        31 => "Too many links",
        63 => "File name too long",
        66 => "Directory not empty",
        69 => "Disc quota exceeded",
        70 => "Stale NFS file handle",
        71 => "Too many levels of remote in path",
        99 => "Write cache flushed to disk",
        10001 => "Illegal NFS file handle",
        10002 => "Update synchronization mismatch",
        10003 => "READDIR/READDIRPLUS cookie is stale",
        10004 => "Operation not supported",
        10005 => "Buffer or request is too small",
        10006 => "Unspecified error on server",
        10007 => "Object of that type not supported",
        10008 => "Request couldn't be completed in time",
        _ => return None,
    })
}

impl Printer<'_> {
    /// Prints the result of a procedure. `bytes`: what follows the kind of an accepted reply.
    pub(super) fn nfs_result(&mut self, version: u32, number: usize, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.text(" ");
        self.nfs_procedure(number);
        let Some(name) = NAMES.get(number).filter(|name| **name != "null") else { return Ok(()) };
        let verifier = bytes.u32(4)? as usize;
        if verifier >= bytes.len + 12 {
            return Err(Cut);
        }
        let mut result = Arguments { bytes: bytes.from(8 + verifier.next_multiple_of(4)), version };
        let code = result.u32()?;
        if code != 0 {
            match rejection(code) {
                Some(words) => put!(self, " {words}"),
                None => put!(self, " ar_stat {code}"),
            }
            return Ok(());
        }
        let status = result.u32()?;
        if status != 0 && !self.options.quick {
            match error(status) {
                Some(words) => put!(self, " ERROR: {words}"),
                None => put!(self, " ERROR: unk {status}"),
            }
        }
        let failed = status != 0;
        match self.nfs_answer(name, failed, &mut result) {
            // What is cut off of a failure is not told.
            Err(Stop::Short) if failed => Ok(()),
            Err(Stop::Short | Stop::Cut) => Err(Cut),
            Ok(()) => Ok(()),
        }
    }

    fn nfs_answer(&mut self, name: &str, failed: bool, result: &mut Arguments<'_>) -> Result<(), Stop> {
        let verbose = self.options.verbose;
        if result.version != 3 {
            return if failed { Ok(()) } else { self.nfs_answer2(name, result) };
        }
        match name {
            "getattr" if failed => {}
            "getattr" => self.nfs_attributes(result, u8::from(!self.options.quick))?,
            "lookup" => {
                if !failed {
                    self.nfs_handle(result)?;
                    self.nfs_after("", result)?;
                }
                if verbose > 1 {
                    self.nfs_after(" post dattr:", result)?;
                }
            }
            "access" => {
                self.nfs_after(" attr:", result)?;
                if !failed {
                    put!(self, " c {:04x}", result.u32()?);
                }
            }
            "readlink" if failed => {}
            "readlink" => {
                self.nfs_after("", result)?;
                self.nfs_quoted(result)?;
            }
            "read" => {
                self.nfs_after("", result)?;
                if !failed && verbose > 0 {
                    put!(self, " {} bytes", result.u32()?);
                    self.text(if result.u32()? != 0 { " EOF" } else { "" });
                }
            }
            "write" => {
                self.nfs_change(result)?;
                if !failed && verbose > 0 {
                    put!(self, " {} bytes", result.u32()?);
                    if verbose > 1 {
                        self.nfs_stability(result.u32()?);
                        put!(self, " verf {:x}", result.u64()?);
                    }
                }
            }
            "create" | "mkdir" | "symlink" | "mknod" if failed => self.nfs_change(result)?,
            "create" | "mkdir" | "symlink" | "mknod" => self.nfs_created(result)?,
            "setattr" | "remove" | "rmdir" => self.nfs_change(result)?,
            "rename" if verbose > 0 => {
                self.text(" from:");
                self.nfs_change(result)?;
                self.text(" to:");
                self.nfs_change(result)?;
            }
            "link" if verbose > 0 => {
                self.nfs_after(" file POST:", result)?;
                self.text(" dir:");
                self.nfs_change(result)?;
            }
            "readdir" | "readdirplus" => {
                self.nfs_after(" POST:", result)?;
                if !failed && verbose > 0 {
                    put!(self, " verf {:016x}", result.u64()?);
                }
            }
            "fsstat" if self.options.quick => {}
            "fsstat" => {
                self.nfs_after(" POST:", result)?;
                self.nfs_space(result)?;
            }
            "fsinfo" => {
                self.nfs_after(" POST:", result)?;
                if !failed {
                    self.nfs_limits(result)?;
                }
            }
            "pathconf" => {
                self.nfs_after(" POST:", result)?;
                if !failed {
                    self.nfs_paths(result)?;
                }
            }
            "commit" => {
                self.nfs_change(result)?;
                if verbose > 1 {
                    put!(self, " verf {:x}", result.u64()?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn nfs_created(&mut self, result: &mut Arguments<'_>) -> Result<(), Stop> {
        let verbose = self.options.verbose;
        if result.u32()? == 0 {
            return Ok(());
        }
        self.nfs_handle(result)?;
        if verbose > 0 {
            self.nfs_after("", result)?;
        }
        if verbose > 1 {
            self.text(" dir attr:");
            self.nfs_change(result)?;
        }
        Ok(())
    }

    fn nfs_answer2(&mut self, name: &str, result: &mut Arguments<'_>) -> Result<(), Stop> {
        let (verbose, quick) = (self.options.verbose, self.options.quick);
        match name {
            "getattr" | "setattr" => self.nfs_attributes(result, u8::from(!quick)),
            "lookup" | "create" | "mkdir" => {
                self.nfs_handle(result)?;
                self.nfs_attributes(result, verbose)
            }
            "readlink" => self.nfs_quoted(result).map_err(Stop::from),
            "read" | "write" => self.nfs_attributes(result, verbose),
            "readdir" if !quick => {
                let (offset, size) = (result.u32()?, result.u32()?);
                put!(self, " offset 0x{offset:x} size {size} ");
                self.text(if result.u32()? != 0 { " eof" } else { "" });
                Ok(())
            }
            "fsstat" if !quick => {
                let bytes = result.short(20)?;
                let (size, block, total) = (bytes.u32(0)?, bytes.u32(4)?, bytes.u32(8)?);
                let (free, available) = (bytes.u32(12)?, bytes.u32(16)?);
                put!(self, " tsize {size} bsize {block} blocks {total} bfree {free} bavail {available}");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Prints how safe written data is.
    pub(super) fn nfs_stability(&mut self, how: u32) {
        match ["unstable", "datasync", "filesync"].get(how as usize) {
            Some(name) => put!(self, " <{name}>"),
            None => put!(self, " <#{how}>"),
        }
    }

    /// Prints a name.
    pub(super) fn nfs_quoted(&mut self, result: &mut Arguments<'_>) -> Result<(), Cut> {
        self.text(" ");
        let text = result.variable()?;
        self.text("\"");
        self.harmless(text);
        self.text("\"");
        Ok(())
    }

    /// Prints the attributes of a file; 1: the most important ones; 2: all.
    fn nfs_attributes(&mut self, result: &mut Arguments<'_>, verbose: u8) -> Result<(), Stop> {
        let three = result.version == 3;
        let bytes = result.bytes;
        bytes.get(0, 20).map_err(|Cut| Stop::Short)?;
        if verbose > 0 {
            let kind = bytes.u32(0)?;
            match self::kind(kind) {
                Some(name) => put!(self, " {name}"),
                None => put!(self, " unk-ft {kind} "),
            }
            let (user, group) = (bytes.u32(12)?.cast_signed(), bytes.u32(16)?.cast_signed());
            put!(self, " {:o} ids {user}/{group}", bytes.u32(4)?);
            let size = if three { bytes.u64(20)? } else { bytes.u32(20)?.into() };
            put!(self, " sz {size}");
        }
        if verbose > 1 {
            let len = if three { ATTRIBUTES } else { ATTRIBUTES2 };
            bytes.get(0, len).map_err(|Cut| Stop::Short)?;
            put!(self, " nlink {} rdev ", bytes.u32(8)?);
            if three {
                put!(self, "{}/{}", bytes.u32(36)?, bytes.u32(40)?);
                put!(self, " fsid {:x} fileid {:x}", bytes.u64(44)?, bytes.u64(52)?);
            } else {
                put!(self, "0x{:x} fsid 0x{:x}", bytes.u32(28)?, bytes.u32(36)?);
                put!(self, " nodeid 0x{:x}", bytes.u32(40)?);
            }
            self.text(" a/m/ctime");
            for at in (len - BEFORE..len).step_by(8) {
                self.nfs_time("", bytes.from(at))?;
            }
        }
        result.bytes = bytes.from(if three { ATTRIBUTES } else { ATTRIBUTES2 });
        Ok(())
    }

    fn nfs_time(&mut self, name: &str, bytes: Bytes<'_>) -> Result<(), Cut> {
        put!(self, "{name} {}.{:06}", bytes.u32(0)?, bytes.u32(4)?);
        Ok(())
    }

    /// Prints a label, and the attributes after an operation, if there are any.
    fn nfs_after(&mut self, label: &str, result: &mut Arguments<'_>) -> Result<(), Stop> {
        let verbose = self.options.verbose;
        self.text(if verbose > 0 { label } else { "" });
        if result.u32()? == 0 {
            return Ok(());
        }
        if verbose > 0 {
            return self.nfs_attributes(result, verbose);
        }
        result.bytes = result.bytes.from(ATTRIBUTES);
        Ok(())
    }

    /// Prints what a change was made to: some attributes before it, and those after it.
    fn nfs_change(&mut self, result: &mut Arguments<'_>) -> Result<(), Stop> {
        let verbose = self.options.verbose;
        self.text(if verbose > 1 { " PRE:" } else { "" });
        if result.u32()? != 0 {
            let before = result.short(BEFORE)?;
            if verbose > 1 {
                put!(self, " sz {}", before.u64(0)?);
                self.nfs_time(" mtime", before.from(8))?;
                self.nfs_time(" ctime", before.from(16))?;
            }
        }
        self.nfs_after(" POST:", result)
    }

    fn nfs_space(&mut self, result: &mut Arguments<'_>) -> Result<(), Stop> {
        let bytes = result.short(52)?;
        let (total, free, available) = (bytes.u64(0)?, bytes.u64(8)?, bytes.u64(16)?);
        put!(self, " tbytes {total} fbytes {free} abytes {available}");
        if self.options.verbose > 0 {
            let (total, free, available) = (bytes.u64(24)?, bytes.u64(32)?, bytes.u64(40)?);
            put!(self, " tfiles {total} ffiles {free} afiles {available} invar {}", bytes.u32(48)?);
        }
        Ok(())
    }

    fn nfs_limits(&mut self, result: &mut Arguments<'_>) -> Result<(), Stop> {
        let bytes = result.short(48)?;
        put!(self, " rtmax {} rtpref {}", bytes.u32(0)?, bytes.u32(4)?);
        put!(self, " wtmax {} wtpref {} dtpref {}", bytes.u32(12)?, bytes.u32(16)?, bytes.u32(24)?);
        if self.options.verbose > 0 {
            put!(self, " rtmult {} wtmult {}", bytes.u32(8)?, bytes.u32(20)?);
            put!(self, " maxfsz {}", bytes.u64(28)?);
            self.nfs_time(" delta", bytes.from(36))?;
            self.text(" ");
        }
        Ok(())
    }

    fn nfs_paths(&mut self, result: &mut Arguments<'_>) -> Result<(), Stop> {
        let bytes = result.short(24)?;
        put!(self, " linkmax {} namemax {}", bytes.u32(0)?, bytes.u32(4)?);
        for (number, name) in ["notrunc", "chownres", "igncase", "keepcase"].into_iter().enumerate() {
            self.text(" ");
            self.text(if bytes.u32(8 + number * 4)? != 0 { name } else { "" });
        }
        Ok(())
    }
}

/// Why nothing more is printed.
enum Stop {
    Cut,
    /// A structure is not whole.
    Short,
}

impl From<Cut> for Stop {
    fn from(_: Cut) -> Self {
        Self::Cut
    }
}

impl<'a> Arguments<'a> {
    /// Takes a structure of `len` bytes.
    fn short(&mut self, len: usize) -> Result<Bytes<'a>, Stop> {
        self.bytes.get(0, len).map_err(|Cut| Stop::Short)?;
        let taken = self.bytes.first(len);
        self.bytes = self.bytes.from(len);
        Ok(taken)
    }
}
