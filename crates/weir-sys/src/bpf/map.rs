//! Maps: memory shared by programs and processes, accessed by key.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::{bpf, raw};
use crate::{CallError, cpu};

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_MAP_DELETE_ELEM: libc::c_int = 3;
const BPF_MAP_GET_NEXT_KEY: libc::c_int = 4;
const BPF_MAP_LOOKUP_BATCH: libc::c_int = 24;
const BPF_MAP_UPDATE_BATCH: libc::c_int = 26;
const BPF_F_NO_PREALLOC: u32 = 1 << 0;

/// Kinds of maps (`enum bpf_map_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Exact keys. Memory is allocated when entries are added.
    Hash = 1,
    /// Numbers from 0 as keys.
    Array = 2,
    /// Programs to call, by number.
    Programs = 3,
    /// Exact keys, with a value for each CPU. Memory for all entries is allocated with the map.
    PerCpuHash = 5,
    /// Numbers from 0 as keys, with a value for each CPU.
    PerCpuArray = 6,
    /// Prefixes as keys; lookups find the longest match. Memory is allocated when entries are added.
    Trie = 11,
}

/// A map. It lives while a descriptor of it is open or a program uses it.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    key: usize,
    value: usize,
    /// Number of values per entry of a map with a value for each CPU; 0 for others.
    cpus: usize,
}

/// `struct { ... }` of `union bpf_attr` for `BPF_MAP_CREATE`, up to the inner map.
#[repr(C)]
struct Create {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
}

/// `struct { ... }` of `union bpf_attr` for commands on one element.
#[repr(C)]
struct Element {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// `struct { ... } batch` of `union bpf_attr` (Linux 5.6).
#[repr(C)]
struct Batch {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}

const _: () = assert!(size_of::<Element>() == 32 && size_of::<Batch>() == 56);

/// `BPF_MAP_CREATE`.
pub(super) fn create(kind: u32, key: u32, value: u32, entries: u32, flags: u32) -> io::Result<OwnedFd> {
    create_as(&Create {
        map_type: kind,
        key_size: key,
        value_size: value,
        max_entries: entries,
        map_flags: flags,
        inner_map_fd: 0,
    })
}

/// Returns [`Map::cpus`].
fn values_per_entry(kind: MapKind) -> Result<usize, CallError> {
    match kind {
        MapKind::PerCpuArray | MapKind::PerCpuHash => Ok(cpu::possible()? as usize),
        MapKind::Hash | MapKind::Array | MapKind::Programs | MapKind::Trie => Ok(0),
    }
}

fn create_as(attr: &Create) -> io::Result<OwnedFd> {
    // SAFETY: `attr` begins like union bpf_attr for this command; the kernel reads no more than its size.
    let fd = unsafe { bpf(BPF_MAP_CREATE, attr) }?;
    // SAFETY: a descriptor that the kernel has just created for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What the kernel says about a map.
struct Info(String);

impl Info {
    fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())).map(Self)
    }

    fn number(&self, field: &str) -> Option<u32> {
        let found = self.0.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(":\t"))?;
        found.trim().parse().ok()
    }
}

/// Returns the number of entries that a map has room for.
///
/// # Errors
///
/// `EINVAL`: this is no map.
pub fn entries(map: BorrowedFd<'_>) -> Result<u32, CallError> {
    let entries = Info::of(map).and_then(|info| {
        info.number("max_entries").ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
    });
    entries.map_err(|error| CallError::new("read the size of an eBPF map", error))
}

impl Map {
    /// Creates a map for up to `entries` entries; key and value sizes are in bytes.
    ///
    /// # Errors
    ///
    /// `EPERM` without `CAP_BPF`, `EINVAL` if the kernel does not support the kind, `ENOMEM`, `E2BIG`.
    pub fn new(kind: MapKind, key: u32, value: u32, entries: u32) -> Result<Self, CallError> {
        let map_flags = if matches!(kind, MapKind::Hash | MapKind::Trie) { BPF_F_NO_PREALLOC } else { 0 };
        let cpus = values_per_entry(kind)?;
        let failed = |error| CallError::new(format!("create eBPF map of kind {kind:?}"), error);
        let fd = create(kind as u32, key, value, entries, map_flags).map_err(failed)?;
        Ok(Self { fd, key: key as usize, value: value as usize, cpus })
    }

    /// Creates a map of maps with one entry, for a map like `inner`.
    ///
    /// # Errors
    ///
    /// The errors of [`Map::new`].
    pub(crate) fn of_maps(inner: &Self) -> Result<Self, CallError> {
        const BPF_MAP_TYPE_ARRAY_OF_MAPS: u32 = 12;
        let attr = Create {
            map_type: BPF_MAP_TYPE_ARRAY_OF_MAPS,
            key_size: 4,
            value_size: 4,
            max_entries: 1,
            map_flags: 0,
            inner_map_fd: raw(inner.as_fd()),
        };
        let fd = create_as(&attr).map_err(|error| CallError::new("create eBPF map of maps", error))?;
        Ok(Self { fd, key: 4, value: 4, cpus: 0 })
    }

    /// Wraps a map that libbpf or another process has created, if it has this kind and these sizes.
    ///
    /// # Errors
    ///
    /// `EINVAL`: it is a different map, or none.
    pub fn received(fd: OwnedFd, kind: MapKind, key: u32, value: u32) -> Result<Self, CallError> {
        let failed = |error| CallError::new("accept eBPF map", error);
        let info = Info::of(fd.as_fd()).map_err(failed)?;
        let is = |field: &str, number: u32| info.number(field) == Some(number);
        if is("map_type", kind as u32) && is("key_size", key) && is("value_size", value) {
            return Ok(Self { fd, key: key as usize, value: value as usize, cpus: values_per_entry(kind)? });
        }
        Err(failed(io::Error::from_raw_os_error(libc::EINVAL)))
    }

    /// Returns all keys. The result is only reliable if the map does not change meanwhile.
    ///
    /// # Errors
    ///
    /// `EPERM` without `CAP_BPF`.
    pub fn keys(&self) -> Result<HashSet<Vec<u8>>, CallError> {
        let mut keys = HashSet::new();
        let mut last: Option<Vec<u8>> = None;
        loop {
            let mut next = vec![0_u8; self.key];
            let mut attr = self.element(&[], next.as_mut_ptr().cast_const());
            attr.key = last.as_ref().map_or(0, |last| last.as_ptr().expose_provenance() as u64);
            // SAFETY: as in `update`; the kernel reads the last key, if any, and writes the next. Both are live and
            // have the size known to the kernel, which `received` has checked and `new` has set.
            match unsafe { bpf(BPF_MAP_GET_NEXT_KEY, &raw const attr) } {
                Ok(_) if keys.insert(next.clone()) => last = Some(next),
                Err(error) if error.raw_os_error() != Some(libc::ENOENT) => {
                    return Err(CallError::new("read keys of eBPF map", error));
                }
                // The last key, or the first one again: the kernel starts over if a key was removed.
                _ => return Ok(keys),
            }
        }
    }

    /// Sets the entry of `key`, whether it exists or not.
    ///
    /// # Errors
    ///
    /// `E2BIG` or `ENOSPC`: the map is full. `EINVAL`: for a map of programs, a program that is incompatible with the
    /// others.
    ///
    /// # Panics
    ///
    /// If the slices do not have the map's sizes.
    pub fn update(&self, key: &[u8], value: &[u8]) -> Result<(), CallError> {
        assert!(key.len() == self.key && value.len() == self.value, "the map has other sizes");
        let attr = self.element(key, value.as_ptr());
        // SAFETY: `attr` begins like union bpf_attr for this command. The kernel reads the key and the value, which are
        // live and have the sizes known to it, as just checked.
        unsafe { bpf(BPF_MAP_UPDATE_ELEM, &raw const attr) }
            .map(drop)
            .map_err(|error| CallError::new("change entry of eBPF map", error))
    }

    /// Sets many entries; `keys` and `values` are concatenated. Existing entries are overwritten.
    ///
    /// # Errors
    ///
    /// The errors of [`Map::update`]. Entries before the failed one are set.
    ///
    /// # Panics
    ///
    /// If the slices are not multiples of the map's sizes, or the numbers of keys and values differ.
    pub fn update_all(&self, keys: &[u8], values: &[u8]) -> Result<(), CallError> {
        let count = keys.len() / self.key;
        assert!(
            keys.len() == count * self.key && values.len() == count * self.value,
            "the map has other sizes"
        );
        if count == 0 {
            return Ok(());
        }
        let mut attr = Batch {
            in_batch: 0,
            out_batch: 0,
            keys: keys.as_ptr().expose_provenance() as u64,
            values: values.as_ptr().expose_provenance() as u64,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            map_fd: raw(self.fd.as_fd()),
            elem_flags: 0,
            flags: 0,
        };
        // SAFETY: as in `update`, for `count` keys and values. The kernel writes the number of entries set to `attr`,
        // so it is passed as mutable.
        let set = unsafe { bpf(BPF_MAP_UPDATE_BATCH, (&raw mut attr).cast_const()) };
        set.map(drop).map_err(|error| CallError::new(format!("set {count} entries of eBPF map"), error))
    }

    /// Removes the entry of `key`, if it exists.
    ///
    /// # Errors
    ///
    /// Any error of the kernel, except that there is no such entry.
    ///
    /// # Panics
    ///
    /// If the key does not have the map's size.
    pub fn remove(&self, key: &[u8]) -> Result<(), CallError> {
        assert!(key.len() == self.key, "the map has other sizes");
        let attr = self.element(key, std::ptr::null());
        // SAFETY: as in `update`; no value is read.
        match unsafe { bpf(BPF_MAP_DELETE_ELEM, &raw const attr) } {
            Err(error) if error.raw_os_error() != Some(libc::ENOENT) => {
                Err(CallError::new("delete entry from eBPF map", error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the sum over all CPUs of the 64-bit counter at `index` of a [`MapKind::PerCpuArray`].
    ///
    /// # Errors
    ///
    /// `ENOENT`: no such entry.
    ///
    /// # Panics
    ///
    /// If the map is of another kind, or its values are not counters.
    pub fn sum(&self, index: u32) -> Result<u64, CallError> {
        assert!(self.key == 4 && self.value == 8 && self.cpus > 0, "the map has other sizes");
        let mut values = vec![0_u64; self.cpus];
        let key = index.to_ne_bytes();
        let attr = self.element(&key, values.as_mut_ptr().cast::<u8>().cast_const());
        // SAFETY: as in `update`; the kernel writes a value for each possible CPU, and `values` has room for them.
        unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &raw const attr) }
            .map_err(|error| CallError::new("read counters of eBPF map", error))?;
        Ok(values.into_iter().sum())
    }

    /// Calls `each` with the key and the values, one for each possible CPU, of every entry of a
    /// [`MapKind::PerCpuHash`]. Entries that are added meanwhile may be left out.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `EPERM` if the process may not use the map.
    ///
    /// # Panics
    ///
    /// If the map is of another kind, or its values are no multiple of 8 bytes.
    pub fn each_per_cpu(&self, each: impl FnMut(&[u8], &[u8])) -> Result<(), CallError> {
        assert!(self.cpus > 0 && self.value.is_multiple_of(8), "the map has other sizes");
        self.each_of(self.value * self.cpus, each)
    }

    /// Calls `each` with the key and the value of every entry of a [`MapKind::Hash`]. Entries that are added meanwhile may be left out.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `EPERM` if the process may not use the map.
    ///
    /// # Panics
    ///
    /// If the map is of another kind.
    pub fn each(&self, each: impl FnMut(&[u8], &[u8])) -> Result<(), CallError> {
        assert!(self.cpus == 0, "the map has other sizes");
        self.each_of(self.value, each)
    }

    /// The same of a hash table whose entries have so many bytes of values.
    fn each_of(&self, values_of_one: usize, mut each: impl FnMut(&[u8], &[u8])) -> Result<(), CallError> {
        assert!(self.key >= 4, "the map has other sizes");
        // Entries per call. Those that share a bucket of the hash table must fit.
        let mut most = 1024;
        let (mut keys, mut values) = (vec![0_u8; most * self.key], vec![0_u8; most * values_of_one]);
        // The kernel's place in the map, which for hash tables is the number of a bucket.
        let (mut begun, mut place) = (false, 0_u32);
        loop {
            let mut next = place;
            let mut attr = Batch {
                in_batch: if begun { (&raw const place).expose_provenance() as u64 } else { 0 },
                out_batch: (&raw mut next).expose_provenance() as u64,
                keys: keys.as_mut_ptr().expose_provenance() as u64,
                values: values.as_mut_ptr().expose_provenance() as u64,
                count: u32::try_from(most).unwrap_or(u32::MAX),
                map_fd: raw(self.fd.as_fd()),
                elem_flags: 0,
                flags: 0,
            };
            // SAFETY: `attr` begins like union bpf_attr for this command. The kernel writes at most `count` keys and
            // values, for which the vectors have room, since it knows the same sizes as this map; the place, 4 bytes;
            // and to `attr` the number of entries, so it is passed as mutable.
            let done = unsafe { bpf(BPF_MAP_LOOKUP_BATCH, (&raw mut attr).cast_const()) };
            let over = match done {
                Ok(_) => false,
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) && most < 1 << 24 => {
                    most *= 2;
                    keys.resize(most * self.key, 0);
                    values.resize(most * values_of_one, 0);
                    continue;
                }
                Err(error) => return Err(CallError::new("read entries of eBPF map", error)),
            };
            let read = (attr.count as usize).min(most);
            let pairs = keys.chunks_exact(self.key).zip(values.chunks_exact(values_of_one));
            pairs.take(read).for_each(|(key, values)| each(key, values));
            if over {
                return Ok(());
            }
            (begun, place) = (true, next);
        }
    }

    fn element(&self, key: &[u8], value: *const u8) -> Element {
        Element {
            map_fd: raw(self.fd.as_fd()),
            padding: 0,
            key: key.as_ptr().expose_provenance() as u64,
            value: value.expose_provenance() as u64,
            flags: 0,
        }
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Map {
    fn as_raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}
