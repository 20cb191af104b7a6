//! Names under which forwarding goes on in the kernel, in a bpffs:
//!
//! ```text
//! /sys/fs/bpf/weir/forward-NAMESPACE-FROM-TO/{forth,back}/{link, queues, sent, refused, filters, outcomes, promiscuous}
//! ```
//!
//! `promiscuous` is a directory, there if the interface has to be taken out of that mode at the end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::statfs;
use rustix::io::Errno;
use weir_bpf::forward::Queues;
use weir_sys::CallError;
use weir_sys::bpf::{self, XdpLink};
use weir_sys::link::{links, set_promiscuous};

use super::account::{ForwardAccount, WayAccount};
use super::end::End;
use super::way;
use crate::Error;
use crate::namespace::here;

const BPFFS: &str = "/sys/fs/bpf";
const BPF_FS_MAGIC: u32 = 0xcafe_4a11;
/// Directories of the ways.
pub(super) const WAYS: [&str; 2] = ["forth", "back"];
/// The program's own link, pinned last: without it the rest is of no effect.
pub(super) const LINK: &str = "link";
const PROMISCUOUS: &str = "promiscuous";

/// The directory of what goes on.
#[derive(Debug)]
pub(super) struct Pins {
    directory: PathBuf,
    /// Otherwise it goes with this.
    kept: AtomicBool,
}

impl Pins {
    /// Makes the directory.
    pub(super) fn make(ends: &[End; 2]) -> Result<Self, Error> {
        let [from, to] = ends;
        if !is_bpffs() {
            return Err(Error::Forward {
                what: format!("nothing can stay in the kernel without its file system for that at {BPFFS}"),
                mend: format!("mount -t bpf bpf {BPFFS}"),
            });
        }
        let directory = place(from.name(), to.name(), from.inside(here)?);
        let pins = Self { directory, kept: AtomicBool::new(false) };
        // What somebody who was killed has left.
        pins.remove()?;
        make_directory(&pins.directory)?;
        Ok(pins)
    }

    /// Refuses what goes on already.
    pub(super) fn check([from, to]: &[End; 2]) -> Result<(), Error> {
        let directory = place(from.name(), to.name(), from.inside(here)?);
        if !WAYS.iter().any(|way| directory.join(way).join(LINK).exists()) {
            return Ok(());
        }
        let (from, to) = (from.name(), to.name());
        let what = format!("`{from}` to `{to}` is forwarded already, by the kernel alone");
        Err(Error::Forward { what, mend: format!("end that: weir forward --end {from} {to}") })
    }

    /// The one that is there.
    pub(super) fn find(from: &str, to: &str) -> Result<Self, Error> {
        let directory = place(from, to, here());
        if !directory.is_dir() {
            let what =
                format!("nothing goes on from `{from}` to `{to}`: there is no {}", directory.display());
            let mend = match others().as_slice() {
                [] => "there is nothing of the kind in this network namespace".to_owned(),
                names => format!("there are: {}", names.join(", ")),
            };
            return Err(Error::Forward { what, mend });
        }
        Ok(Self { directory, kept: AtomicBool::new(true) })
    }

    /// Where it is.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory of a way, made.
    pub(super) fn way(&self, name: &str) -> Result<PathBuf, Error> {
        let directory = self.directory.join(name);
        make_directory(&directory)?;
        Ok(directory)
    }

    /// What tells that the interface of a way was made promiscuous.
    pub(super) fn promiscuous(&self, name: &str) -> PathBuf {
        self.directory.join(name).join(PROMISCUOUS)
    }

    /// Has the directory stay.
    pub(super) fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed); // pairs with nothing: one thread
    }

    /// Ends what goes on.
    pub(super) fn end(self, from: &str, to: &str) -> Result<ForwardAccount, Error> {
        let mut ended = Vec::new();
        for (name, [from, to]) in WAYS.into_iter().zip([[from, to], [to, from]]) {
            let directory = self.directory.join(name);
            if !directory.is_dir() {
                continue;
            }
            match XdpLink::pinned(&directory.join(LINK)) {
                Ok(link) => detached(link.detach())?,
                Err(error) if error.errno() == Errno::NOENT.raw_os_error() => {}
                Err(error) => return Err(privileged(error)),
            }
            if directory.join(PROMISCUOUS).is_dir() {
                let index = links()?.into_iter().find(|link| link.name == from).map(|link| link.index);
                index.map(|index| set_promiscuous(index, false)).transpose()?;
            }
            ended.push((directory, from, to));
        }
        bpf::synchronize()?;
        let mut ways = Vec::new();
        for (directory, from, to) in ended {
            let queues = Queues::pinned(&directory)?;
            let (from, to) = (from.to_owned(), to.to_owned());
            ways.push(WayAccount { from, to, queues: way::queues(&queues)?, nic: None, sender: None });
        }
        self.remove()?;
        Ok(ForwardAccount { elapsed: Duration::ZERO, ways })
    }

    fn remove(&self) -> Result<(), Error> {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(CallError::new(format!("remove {}", self.directory.display()), error).into())
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Pins {
    /// What could not be begun leaves nothing.
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Relaxed) {
            let _gone_already = self.remove();
        }
    }
}

/// What comes of taking a program off: it may be off already, with its interface.
pub(super) fn detached(result: Result<(), CallError>) -> Result<(), Error> {
    match result {
        Err(error) if error.errno() != Errno::NOLINK.raw_os_error() => Err(error.into()),
        _ => Ok(()),
    }
}

pub(super) fn make_directory(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path)
        .map_err(|error| privileged(CallError::new(format!("make {}", path.display()), error)))
}

fn privileged(error: CallError) -> Error {
    match Errno::from_raw_os_error(error.errno()) {
        Errno::PERM | Errno::ACCESS => {
            Error::Privilege { operation: error.operation, needs: "cap_dac_override" }
        }
        _ => error.into(),
    }
}

fn is_bpffs() -> bool {
    statfs(BPFFS).is_ok_and(|found| u64::try_from(found.f_type).is_ok_and(|kind| kind == BPF_FS_MAGIC.into()))
}

/// The name of a pair of interfaces. No name of an interface has a slash; a dot may not be in a name there.
fn place(from: &str, to: &str, namespace: Option<(u64, u64)>) -> PathBuf {
    let inode = namespace.map_or(0, |(_, inode)| inode);
    let own = |name: &str| name.rsplit('/').next().unwrap_or(name).replace('.', "_");
    Path::new(BPFFS).join("weir").join(format!("forward-{inode}-{}-{}", own(from), own(to)))
}

/// What else goes on in this network namespace.
fn others() -> Vec<String> {
    let prefix = format!("forward-{}-", here().map_or(0, |(_, inode)| inode));
    let entries = fs::read_dir(Path::new(BPFFS).join("weir")).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        names.filter_map(|name| Some(name.strip_prefix(&prefix)?.to_owned())).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_a_name_that_a_bpffs_takes() {
        let path = place("ns/eth0.5", "eth1", Some((4, 4_026_531_840)));
        assert_eq!(path, Path::new("/sys/fs/bpf/weir/forward-4026531840-eth0_5-eth1"));
        assert_ne!(place("a", "b", None), place("b", "a", None));
    }
}
