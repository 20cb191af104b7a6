//! Replies of NFS, which only their calls explain.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::Arguments;
use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

/// Calls that are remembered.
const REMEMBERED: usize = 64;
/// Length of the attributes in version 3.
const ATTRIBUTES: usize = 84;

/// What a reply is the answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    id: u32,
    client: IpAddr,
    server: IpAddr,
    version: u32,
    name: &'static str,
}

/// The last calls.
#[derive(Debug, Default)]
pub(crate) struct Calls(VecDeque<Call>);

impl Calls {
    pub(super) fn remember(&mut self, id: u32, ends: (IpAddr, IpAddr), version: u32, name: &'static str) {
        self.0.truncate(REMEMBERED - 1);
        self.0.push_front(Call { id, client: ends.0, server: ends.1, version, name });
    }

    /// Returns version and name of the call from `ends.0` to `ends.1`.
    pub(super) fn find(&self, id: u32, ends: (IpAddr, IpAddr)) -> Option<(u32, &'static str)> {
        let call = self.0.iter().find(|call| (call.id, call.client, call.server) == (id, ends.0, ends.1))?;
        Some((call.version, call.name))
    }
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
    /// Prints the result of a procedure. `bytes`: what follows the header of an accepted reply.
    pub(super) fn nfs_result(&mut self, version: u32, name: &str, bytes: Bytes<'_>) -> Result<(), Cut> {
        put!(self, " {name}");
        let mut result = Arguments { bytes, version };
        if name == "null" {
            return Ok(());
        }
        let status = result.u32()?;
        if status != 0 {
            match error(status) {
                Some(words) => put!(self, " ERROR: {words}"),
                None => put!(self, " ERROR: unk {status}"),
            }
            return Ok(());
        }
        match name {
            "getattr" => self.nfs_attributes(&mut result),
            "lookup" => self.nfs_handle(&mut result),
            "create" | "mkdir" | "symlink" | "mknod" if version == 2 || result.u32()? != 0 => {
                self.nfs_handle(&mut result)
            }
            "access" => {
                skip_attributes(&mut result)?;
                put!(self, " c {:04x}", result.u32()?);
                Ok(())
            }
            "readlink" => {
                skip_attributes(&mut result)?;
                let target = result.variable()?;
                self.text(" \"");
                self.harmless(target);
                self.text("\"");
                Ok(())
            }
            "fsstat" if version == 3 => {
                skip_attributes(&mut result)?;
                let (total, free, available) = (result.u64()?, result.u64()?, result.u64()?);
                put!(self, " tbytes {total} fbytes {free} abytes {available}");
                Ok(())
            }
            "fsinfo" => {
                skip_attributes(&mut result)?;
                let mut sizes = [0; 7];
                for size in &mut sizes {
                    *size = result.u32()?;
                }
                let [read, read_usual, _, write, write_usual, _, directory] = sizes;
                put!(self, " rtmax {read} rtpref {read_usual} wtmax {write} wtpref {write_usual}");
                put!(self, " dtpref {directory}");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn nfs_attributes(&mut self, result: &mut Arguments<'_>) -> Result<(), Cut> {
        const KINDS: [&str; 8] = ["NON", "REG", "DIR", "BLK", "CHR", "LNK", "", "FIFO"];
        let (kind, mode, _links, user, group) =
            (result.u32()?, result.u32()?, result.u32()?, result.u32()?, result.u32()?);
        let size = if result.version == 3 { result.u64()? } else { result.u32()?.into() };
        match KINDS.get(kind as usize).filter(|name| !name.is_empty()) {
            Some(name) => put!(self, " {name}"),
            None => put!(self, " unk-ft {kind} "),
        }
        put!(self, " {mode:o} ids {user}/{group} sz {size}");
        Ok(())
    }
}

/// Skips the attributes that may precede a result in version 3.
fn skip_attributes(result: &mut Arguments<'_>) -> Result<(), Cut> {
    if result.version == 3 && result.u32()? != 0 {
        result.opaque(ATTRIBUTES)?;
    }
    Ok(())
}
