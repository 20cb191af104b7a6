//! Programs that follow sockets from birth, and find those that are older (`who.bpf.c`, `who_plain.bpf.c`).

mod hook;
mod plain;
mod report;

use std::io::{self, ErrorKind, Read as _};
use std::mem::{MaybeUninit, take};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};

use libbpf_rs::skel::{OpenSkel as _, Skel as _, SkelBuilder as _};
use libbpf_rs::{
    Iter, Link, MapCore as _, MapFlags, MapHandle, Object, OpenObject, RingBuffer, RingBufferBuilder,
};
use weir_sys::CallError;

pub use self::hook::Hook;
pub use self::report::{Cause, Ends, ProcessReport, Report};
use crate::layout::{Number as _, who_report};
use crate::log::{LoadError, logged};

skeleton!("who");

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The control group whose processes' sockets are followed: with the root of cgroup2, all. `None` if there is no cgroup2.
    pub cgroup: Option<BorrowedFd<'a>>,
    /// Bytes of reports that wait to be read; rounded up to a power of two. A report has 128.
    pub ring: u32,
    /// Hooks that are left out.
    pub without: &'a [Hook],
    /// Whether to do as if the kernel did not describe its types (BTF).
    pub plain: bool,
}

impl Options<'_> {
    fn ring(&self) -> u32 {
        /// A multiple of any page's size.
        const LEAST: u32 = 1 << 16;
        const MOST: u32 = 1 << 30;
        self.ring.clamp(LEAST, MOST).next_power_of_two()
    }
}

/// A hook that is not attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which.
    pub hook: Hook,
    /// What the kernel says, or why it was not asked.
    pub why: String,
}

/// Programs that are attached, until this is dropped or the process ends.
#[derive(Debug)]
pub struct Following {
    links: Vec<(Hook, Link)>,
    refused: Vec<Refused>,
    reports: MapHandle,
    missed: MapHandle,
}

/// Loads the programs of one skeleton, but those that were refused, and attaches them.
macro_rules! load {
    ($skeleton:path, $options:expr, $refused:expr) => {{
        let mut storage = MaybeUninit::uninit();
        let mut open = <$skeleton>::default().open(&mut storage)?;
        let constants = open.maps.rodata_data.as_deref_mut().expect("the programs have constants");
        constants.wake_at = u64::from($options.ring() / 2);
        open.maps.reports.set_max_entries($options.ring())?;
        choose(open.open_object_mut(), $options, $refused);
        let mut loaded = open.load()?;
        let mut following = Following {
            links: Vec::new(),
            refused: $refused.to_vec(),
            reports: MapHandle::try_from(&loaded.maps.reports)?,
            missed: MapHandle::try_from(&loaded.maps.missed)?,
        };
        following.attach_all(loaded.object(), $options);
        let variables = loaded.maps.bss_data.as_deref_mut().expect("the programs have a variable");
        variables.tcp_is_told = u32::from(following.has(Hook::Tcp));
        Ok(following)
    }};
}

impl Following {
    /// Loads the programs and attaches each to its hook. One that the kernel refuses is left out: see
    /// [`refused`](Self::refused).
    ///
    /// # Errors
    ///
    /// Privileges are missing, or memory for the maps is short.
    pub fn attach(options: &Options<'_>) -> Result<Self, LoadError> {
        let why = if options.plain {
            "not wanted".to_owned()
        } else {
            match without_refused("who", options, |refused| load!(skeleton::WhoSkelBuilder, options, refused))
            {
                Err(error) if !error.is_permission() && !error.is_memory() => first_line(&error),
                other => return other,
            }
        };
        // The kernel does not describe its types, or not all that are read.
        let mut following = without_refused("who_plain", options, |refused| {
            load!(plain::skeleton::WhoPlainSkelBuilder, options, refused)
        })?;
        let needing = Hook::ALL.into_iter().filter(|hook| hook.needs_types());
        following.refused.extend(needing.map(|hook| Refused { hook, why: why.clone() }));
        Ok(following)
    }

    /// Attaches what was loaded.
    fn attach_all(&mut self, object: &Object, options: &Options<'_>) {
        for program in object.progs_mut() {
            let Some(hook) = program.name().to_str().and_then(Hook::named) else { continue };
            if !is_wanted(hook, options, &self.refused) {
                continue;
            }
            let attached = match options.cgroup {
                Some(cgroup) if hook.needs_cgroup() => program.attach_cgroup(cgroup.as_raw_fd()),
                _ => program.attach(),
            };
            match attached {
                Ok(link) => self.links.push((hook, link)),
                Err(error) => self.refused.push(Refused { hook, why: error.to_string() }),
            }
        }
    }

    /// Returns whether the hook is attached.
    pub fn has(&self, hook: Hook) -> bool {
        self.links.iter().any(|(attached, _)| *attached == hook)
    }

    /// Returns the hooks that the kernel refuses.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Returns a reader of reports. There can be one at a time.
    ///
    /// # Errors
    ///
    /// Memory is short.
    pub fn reader(&self) -> Result<Reader, CallError> {
        let failed = |error| CallError::new("read reports of sockets", io::Error::other(error));
        let read = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&read);
        let mut builder = RingBufferBuilder::new();
        let added = builder.add(&self.reports, move |bytes: &[u8]| {
            to.lock().unwrap_or_else(PoisonError::into_inner).extend(Report::from_bytes(bytes));
            0
        });
        added.map_err(failed)?;
        Ok(Reader { ring: Mutex::new(builder.build().map_err(failed)?), read })
    }

    /// Returns how many reports were lost that no later one has told of yet.
    ///
    /// # Errors
    ///
    /// The kernel does not let this process read it.
    pub fn missed(&self) -> Result<u64, CallError> {
        let failed = |error| CallError::new("read how many reports of sockets were lost", error);
        let all = self.missed.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let all = all.map_err(|error| failed(io::Error::other(error)))?;
        Ok(all.unwrap_or_default().iter().map(|count| u64::read(count)).sum())
    }

    /// Returns a report for each process and each socket that it has open; `None` without [`Hook::Files`].
    ///
    /// # Errors
    ///
    /// The kernel does not let this process look.
    pub fn look(&self) -> Result<Option<Vec<Report>>, CallError> {
        const REPORT: usize = size_of::<who_report>();
        let failed = |error| CallError::new("look at open sockets", error);
        let Some((_, link)) = self.links.iter().find(|(hook, _)| *hook == Hook::Files) else {
            return Ok(None);
        };
        let mut files = Iter::new(link).map_err(|error| failed(io::Error::other(error)))?;
        let mut bytes = Vec::new();
        let mut buffer = vec![0; REPORT * 256];
        loop {
            match files.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => bytes.extend_from_slice(&buffer[..read]),
                // It stops after a million files without a socket.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(Some(bytes.chunks_exact(REPORT).filter_map(Report::from_bytes).collect()))
    }
}

/// It is readable, for `poll(2)`, when something was reported; a sleeping process is woken once the ring is half full.
impl AsFd for Following {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }
}

/// Reads reports.
#[derive(Debug)]
pub struct Reader {
    /// For [`Sync`] only.
    ring: Mutex<RingBuffer<'static>>,
    read: Arc<Mutex<Vec<Report>>>,
}

impl Reader {
    /// Returns what was reported since the last time, on each processor in order. Makes no system call.
    ///
    /// # Errors
    ///
    /// The ring is damaged.
    pub fn take(&mut self) -> Result<Vec<Report>, CallError> {
        let taken = self.ring.get_mut().unwrap_or_else(PoisonError::into_inner).consume_raw();
        if taken < 0 {
            let error = io::Error::from_raw_os_error(-taken);
            return Err(CallError::new("read reports of sockets", error));
        }
        Ok(take(&mut *self.read.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Loads, and again without the program that was refused, until the kernel takes the rest.
fn without_refused(
    name: &'static str,
    options: &Options<'_>,
    load: impl Fn(&[Refused]) -> Result<Following, libbpf_rs::Error>,
) -> Result<Following, LoadError> {
    let without = Hook::ALL.into_iter().filter(|hook| hook.needs_cgroup() && options.cgroup.is_none());
    let mut refused: Vec<Refused> =
        without.map(|hook| Refused { hook, why: "no cgroup2 is mounted".to_owned() }).collect();
    loop {
        let error = match logged(name, || load(&refused)) {
            Err(error) if !error.is_permission() && !error.is_memory() => error,
            other => return other,
        };
        match Hook::named_in(&error.log) {
            Some(hook) if !is_refused(hook, &refused) => {
                refused.push(Refused { hook, why: first_line(&error) });
            }
            _ => return Err(error),
        }
    }
}

/// Leaves out the programs that are not wanted.
fn choose(object: &mut OpenObject, options: &Options<'_>, refused: &[Refused]) {
    for mut program in object.progs_mut() {
        let hook = program.name().to_str().and_then(Hook::named);
        program.set_autoload(hook.is_some_and(|hook| is_wanted(hook, options, refused)));
    }
}

fn is_wanted(hook: Hook, options: &Options<'_>, refused: &[Refused]) -> bool {
    !options.without.contains(&hook) && !is_refused(hook, refused)
}

fn is_refused(hook: Hook, refused: &[Refused]) -> bool {
    refused.iter().any(|refused| refused.hook == hook)
}

fn first_line(error: &LoadError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
