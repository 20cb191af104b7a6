//! The memory of a capture: one budget for all interfaces and queues, calculated before the first is opened.

use std::fs;
use std::path::{Path, PathBuf};

use weir_ring::Shape;

use crate::live::settings::{DEFAULT_CHUNK_SIZE, DEFAULT_CHUNKS, PoolSize};
use crate::{Error, Fit, Interfaces};

/// By default a capture may use the available memory divided by this.
const BUDGET: u64 = 8;
/// All memory divided by this stays in reserve, whatever is requested, ...
const RESERVE: u64 = 16;
/// ... but at least this much, ...
const LEAST_RESERVE: u64 = 256 << 20;
/// ... unless that exceeds all memory divided by this.
const MOST_RESERVE: u64 = 4;

/// Default size of all pools of a source together, however many queues it has. Each queue gets at least
/// [`FEWEST_CHUNKS`] chunks.
const DEFAULT_POOL: u64 = 512 << 20;
const FEWEST_CHUNKS: u32 = 8;
/// If memory is short, what the kernel needs beside a pool takes at most the interface's share divided by this. By
/// default it takes a third: 32 MiB beside 64.
const BESIDE: u64 = 3;
/// The smallest chunk size: if memory is short, chunks shrink, but a queue keeps [`FEWEST_CHUNKS`].
const LEAST_CHUNK_SIZE: u32 = 64 << 10;

/// The memory of the machine, or of a control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    total: u64,
    available: u64,
}

impl Memory {
    /// Returns the memory that leaves the least for a capture; `None` if the kernel does not report any.
    pub(crate) fn now() -> Option<Self> {
        machine().into_iter().chain(control_groups()).min_by_key(|memory| memory.usable())
    }

    /// Returns the bytes kept in reserve.
    fn reserve(self) -> u64 {
        (self.total / RESERVE).max(LEAST_RESERVE).min(self.total / MOST_RESERVE)
    }

    /// Returns the bytes that can be requested.
    fn usable(self) -> u64 {
        self.available.saturating_sub(self.reserve())
    }

    /// Returns the bytes that a capture may use by default.
    fn budget(self) -> u64 {
        (self.available / BUDGET).min(self.usable())
    }
}

fn machine() -> Option<Memory> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |name| value(&text, name)?.checked_mul(1024);
    Some(Memory { total: kib("MemTotal:")?, available: kib("MemAvailable:")? })
}

/// For control groups of version 2 and of version 1: their directory, the files with limit and use, and the part of the
/// use that the kernel can drop.
const VERSIONS: [(&str, [&str; 2], &[&str]); 2] = [
    (
        "/sys/fs/cgroup",
        ["memory.max", "memory.current"],
        &["inactive_file", "active_file", "slab_reclaimable"],
    ),
    (
        "/sys/fs/cgroup/memory",
        ["memory.limit_in_bytes", "memory.usage_in_bytes"],
        &["total_inactive_file", "total_active_file"],
    ),
];

/// Returns the control groups of this process, and the groups around them, that have a limit.
fn control_groups() -> Vec<Memory> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups.lines().flat_map(levels_of).filter_map(|level| control_group(&level)).collect()
}

/// Returns the directories for a line of `/proc/self/cgroup`, `ID:CONTROLLERS:PATH`, up to the root.
fn levels_of(line: &str) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let root = match controllers {
        "" => VERSIONS[0].0,
        "memory" => VERSIONS[1].0,
        _ => return Vec::new(),
    };
    let path = Path::new(path.trim_start_matches('/'));
    path.ancestors().map(|level| Path::new(root).join(level)).collect()
}

fn control_group(directory: &Path) -> Option<Memory> {
    let text = |file: &str| fs::read_to_string(directory.join(file)).ok();
    let number = |file: &str| text(file)?.trim().parse::<u64>().ok();
    VERSIONS.iter().find_map(|(_, [limit, used], droppable)| {
        let (total, used, stat) = (number(limit)?, number(used)?, text("memory.stat")?);
        let droppable: u64 = droppable.iter().filter_map(|name| value(&stat, name)).sum();
        Some(Memory { total, available: total.saturating_sub(used.saturating_sub(droppable)) })
    })
}

/// Returns the number in the line that begins with `name`.
fn value(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    lines.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()?.parse().ok()).flatten())
}

/// What a source needs memory for on an interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub(crate) queues: u32,
    /// Size of the largest record's data in bytes.
    pub(crate) largest: u32,
    /// The kernel's memory, besides the pool.
    pub(crate) buffers: KernelBuffers,
}

/// Bytes that the kernel fills before they reach the pool: a ring or frames. If memory is short they are halved, down to
/// the least.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelBuffers {
    pub(crate) usual: u64,
    pub(crate) least: u64,
}

impl KernelBuffers {
    /// Returns as much as fits `most`, but not less than the least.
    fn within(self, most: u64) -> u64 {
        let mut bytes = self.usual;
        while bytes > most && bytes / 2 >= self.least && bytes > 1 {
            bytes /= 2;
        }
        bytes
    }
}

/// The memory to use on an interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub(crate) shape: Shape,
    /// Bytes beside the pool.
    pub(crate) buffers: u64,
}

impl Planned {
    pub(crate) fn bytes(&self) -> u64 {
        self.shape.data_bytes().saturating_add(self.buffers)
    }
}

impl PoolSize {
    /// Returns the dimensions of a pool for `need`, if there is memory for it now. `name` is the interface.
    pub(crate) fn shape(&self, name: &str, need: Need) -> Result<Shape, Error> {
        Ok(self.plan(name, need)?.shape)
    }

    /// Does the same where the kernel needs memory beside the pool.
    pub(crate) fn plan(&self, name: &str, need: Need) -> Result<Planned, Error> {
        let planned = self.fitting(need)?;
        check(name, planned.bytes())?;
        Ok(planned)
    }

    /// Returns the usual memory, or else as much as fits, but at least the [least](Self::least).
    fn fitting(&self, need: Need) -> Result<Planned, Error> {
        let (usual, least) = (self.usual(need)?, self.least(need)?);
        let memory = self.memory.unwrap_or(u64::MAX);
        if self.chunks.is_some() {
            let buffers = need.buffers.within(self.buffers.unwrap_or(u64::MAX));
            return Ok(Planned { buffers, ..usual });
        }
        if usual.bytes() <= memory {
            return Ok(usual);
        }
        let left = memory.saturating_sub(least.shape.data_bytes());
        let buffers = need.buffers.within((memory / BESIDE).min(left));
        let planned = |shape| Planned { shape, buffers };
        let room = memory.saturating_sub(buffers) / u64::from(need.queues);
        let (least, mut chunk_size) = (least.shape, usual.shape.limit());
        loop {
            let one = Shape::new(need.queues, least.chunks(), chunk_size, need.largest)?;
            let chunks = u32::try_from(room / u64::from(one.stride())).unwrap_or(u32::MAX);
            if chunks >= least.chunks() || chunk_size <= least.limit() {
                let chunks = chunks.clamp(least.chunks(), DEFAULT_CHUNKS);
                return Ok(planned(Shape::new(need.queues, chunks, chunk_size, need.largest)?));
            }
            chunk_size = (chunk_size / 2).max(least.limit());
        }
    }

    /// Returns the requested pool or the default one, before many interfaces or little memory reduce it.
    fn usual(&self, need: Need) -> Result<Planned, Error> {
        let chunk_size = self.chunk_size.unwrap_or(DEFAULT_CHUNK_SIZE);
        let chunks = self.chunks.unwrap_or_else(|| {
            let share = DEFAULT_POOL / u64::from(chunk_size.max(1)) / u64::from(need.queues.max(1));
            u32::try_from(share).unwrap_or(u32::MAX).clamp(FEWEST_CHUNKS, DEFAULT_CHUNKS)
        });
        let shape = Shape::new(need.queues, chunks, chunk_size, need.largest)?;
        Ok(Planned { shape, buffers: need.buffers.usual })
    }

    /// Returns the least memory that satisfies the request.
    fn least(&self, need: Need) -> Result<Planned, Error> {
        let shape = match *self {
            Self { chunks: Some(_), .. } => self.usual(need)?.shape,
            Self { chunk_size: Some(asked), .. } => Shape::new(need.queues, 2, asked, need.largest)?,
            _ => Shape::new(need.queues, FEWEST_CHUNKS, LEAST_CHUNK_SIZE, need.largest)?,
        };
        Ok(Planned { shape, buffers: need.buffers.within(0) })
    }

    /// Returns the bytes of all `needs` together, each as `planned`.
    fn sum(
        &self,
        needs: &[Need],
        planned: impl Fn(&Self, Need) -> Result<Planned, Error>,
    ) -> Result<u64, Error> {
        needs.iter().try_fold(0, |sum: u64, &need| Ok(sum.saturating_add(planned(self, need)?.bytes())))
    }
}

/// What may be opened on an interface: one of these alternatives, each with one pool or several.
pub(crate) type Alternatives = Vec<Vec<Need>>;

/// Bytes that an interface or source uses: the usual amount, and the least.
#[derive(Clone, Copy, Debug)]
struct Want {
    usual: u64,
    least: u64,
}

impl Want {
    /// Returns what is wanted beside the pools: the maximum over the alternatives.
    fn for_buffers(alternatives: &Alternatives) -> Self {
        let most = |of: fn(KernelBuffers) -> u64| {
            let sums = alternatives.iter().map(|needs| needs.iter().map(|need| of(need.buffers)).sum());
            sums.max().unwrap_or(0)
        };
        Self { usual: most(|buffers| buffers.usual), least: most(|buffers| buffers.within(0)) }
    }

    /// Takes the maximum over the alternatives.
    fn of(alternatives: &Alternatives, size: &PoolSize) -> Result<Self, Error> {
        let (mut usual, mut least) = (0, 0);
        for needs in alternatives {
            usual = size.sum(needs, PoolSize::usual)?.max(usual);
            least = size.sum(needs, PoolSize::least)?.max(least);
        }
        Ok(Self { usual, least })
    }
}

/// Divides `budget`. Each gets the usual amount or, if that does not fit, an equal share, but at least its minimum.
/// Returns `None` if the minimums do not fit.
fn divide(wants: &[Want], budget: u64) -> Option<Vec<u64>> {
    let at = |level: u64| wants.iter().map(move |want| want.usual.min(want.least.max(level)));
    let fits = |level| at(level).fold(0, u64::saturating_add) <= budget;
    let (mut fitting, mut most) = (0, wants.iter().map(|want| want.usual).max().unwrap_or(0));
    while fitting < most {
        let middle = most - (most - fitting) / 2;
        if fits(middle) {
            fitting = middle;
        } else {
            most = middle - 1;
        }
    }
    fits(fitting).then(|| at(fitting).collect())
}

/// Divides the memory among the pools of `interfaces`, given by name with what may be opened there. The order is kept.
///
/// # Errors
///
/// The request, or the minimum that it takes, exceeds the memory.
pub(crate) fn shares(
    interfaces: &[(&str, Alternatives)],
    size: PoolSize,
    memory: Option<Memory>,
) -> Result<Vec<PoolSize>, Error> {
    let named = || match interfaces {
        [(name, _)] => Interfaces::One((*name).to_owned()),
        _ => Interfaces::Several(interfaces.len()),
    };
    let usable = memory.map_or(u64::MAX, Memory::usable);
    let refused = |asked, fit| {
        let (available, reserve) = memory.map_or((0, 0), |memory| (memory.available, memory.reserve()));
        Err(Error::Memory { interfaces: named(), asked, available, reserve, fit })
    };
    if size.chunks.is_some() {
        // The other alternatives check for themselves when they are opened.
        let first: Vec<Need> =
            interfaces.iter().filter_map(|(_, any)| any.first()).flatten().copied().collect();
        let asked = size.sum(&first, PoolSize::least)?;
        if asked > usable {
            return refused(asked, fitting_pool(&first, size, usable));
        }
        // The pools are as large as asked for; what the kernel needs beside them may take as much as a capture may by
        // default.
        let wants: Vec<Want> = interfaces.iter().map(|(_, any)| Want::for_buffers(any)).collect();
        let pools = first.iter().try_fold(0, |sum: u64, &need| {
            Ok::<_, Error>(sum.saturating_add(size.usual(need)?.shape.data_bytes()))
        })?;
        let budget = memory.map_or(u64::MAX, Memory::budget).min(usable.saturating_sub(pools));
        let rest = divide(&wants, budget).unwrap_or_else(|| vec![0; wants.len()]);
        return Ok(rest.into_iter().map(|rest| PoolSize { buffers: Some(rest), ..size }).collect());
    }
    let wants = interfaces.iter().map(|(_, any)| Want::of(any, &size)).collect::<Result<Vec<_>, Error>>()?;
    let budget = size.memory.unwrap_or_else(|| memory.map_or(u64::MAX, Memory::budget));
    let Some(shares) = divide(&wants, budget) else {
        let least = wants.iter().fold(0, |sum: u64, want| sum.saturating_add(want.least));
        if least > usable {
            return refused(least, None);
        }
        return Err(Error::Budget {
            interfaces: named(),
            least,
            budget,
            enough: least.next_multiple_of(1 << 20),
        });
    };
    let asked = shares.iter().fold(0, |sum: u64, &share| sum.saturating_add(share));
    if asked > usable {
        return refused(asked, (usable >= 1 << 20).then_some(Fit::Memory(usable >> 20 << 20)));
    }
    Ok(shares.into_iter().map(|share| PoolSize { memory: Some(share), ..size }).collect())
}

/// Divides an interface's memory among sources that are opened there together.
pub(crate) fn shares_of<const N: usize>(
    sources: [Alternatives; N],
    size: PoolSize,
) -> Result<[PoolSize; N], Error> {
    let Some(memory) = size.memory else { return Ok([size; N]) };
    let mut wants = [Want { usual: 0, least: 0 }; N];
    for (want, any) in wants.iter_mut().zip(&sources) {
        *want = Want::of(any, &size)?;
    }
    let mut sizes = [size; N];
    for (size, share) in sizes.iter_mut().zip(divide(&wants, memory).into_iter().flatten()) {
        size.memory = Some(share);
    }
    Ok(sizes)
}

/// Returns the largest pool per queue for which there is memory, smaller than the requested one.
fn fitting_pool(needs: &[Need], asked: PoolSize, usable: u64) -> Option<Fit> {
    let chunk_size = u64::from(asked.chunk_size.unwrap_or(DEFAULT_CHUNK_SIZE));
    let bytes = u64::from(asked.chunks?).saturating_mul(chunk_size);
    let sizes = (13..bytes.max(1).next_power_of_two().ilog2()).rev().map(|power| 1 << power);
    let pools = sizes.map(|bytes| pool_of(bytes, None));
    let fits = |&(chunks, chunk_size): &(u32, u32)| {
        let size = PoolSize { chunks: Some(chunks), chunk_size: Some(chunk_size), ..PoolSize::default() };
        size.sum(needs, PoolSize::least).is_ok_and(|sum| sum <= usable)
    };
    let fitting = pools.into_iter().find(fits);
    fitting.map(|(chunks, chunk_size)| Fit::Chunks { chunks, chunk_size })
}

/// Returns the number and the size of the chunks for a pool of at least `bytes` per queue. The size is the requested
/// one or the default, less in a small pool.
pub fn pool_of(bytes: u64, chunk_size: Option<u32>) -> (u32, u32) {
    let chunk_size = chunk_size.map(u64::from).unwrap_or_else(|| {
        let share = (bytes / u64::from(FEWEST_CHUNKS)).max(1);
        (1 << share.ilog2()).clamp(4 << 10, u64::from(DEFAULT_CHUNK_SIZE))
    });
    // What exceeds u32 exceeds any memory, and is rejected when it is allocated.
    let fit = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    (fit(bytes.div_ceil(chunk_size.max(1)).max(2)), fit(chunk_size))
}

/// Rejects a request for more memory than the machine, or a control group, has left beyond its reserve.
pub(crate) fn check(name: &str, asked: u64) -> Result<(), Error> {
    match Memory::now() {
        Some(memory) if asked > memory.usable() => {
            let (available, reserve) = (memory.available, memory.reserve());
            Err(Error::Memory {
                interfaces: Interfaces::One(name.to_owned()),
                asked,
                available,
                reserve,
                fit: None,
            })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    /// The need of a pool for packets of up to this length.
    fn need(queues: u32, largest: u32) -> Need {
        Need { queues, largest, buffers: KernelBuffers::default() }
    }

    fn machine(total: u64, available: u64) -> Option<Memory> {
        Some(Memory { total, available })
    }

    /// Returns `count` interfaces, each with one pool of `queues` queues for GSO packets.
    fn interfaces(count: usize, queues: u32) -> Vec<(&'static str, Alternatives)> {
        vec![("eth0", vec![vec![need(queues, 65_549)]]); count]
    }

    /// Returns the bytes used by the pools that are opened then.
    fn taken(interfaces: &[(&str, Alternatives)], sizes: &[PoolSize]) -> u64 {
        let opened = interfaces.iter().zip(sizes).flat_map(|((_, any), size)| {
            any.iter().map(|needs| size.sum(needs, PoolSize::fitting).expect("a pool")).max()
        });
        opened.sum()
    }

    #[test]
    fn some_memory_is_always_left_to_others() {
        let of = |total, available| {
            let memory = Memory { total, available };
            (memory.reserve() / MIB, memory.usable() / MIB, memory.budget() / MIB)
        };
        assert_eq!(of(64 * GIB, 48 * GIB), (4096, 45_056, 6144));
        assert_eq!(of(2 * GIB, GIB), (256, 768, 128));
        assert_eq!(of(512 * MIB, 400 * MIB), (128, 272, 50));
        assert_eq!(of(512 * MIB, 130 * MIB), (128, 2, 2));
        assert_eq!(of(512 * MIB, 100 * MIB), (128, 0, 0));
    }

    #[test]
    fn pools_are_as_usual_where_there_is_enough() {
        let one = interfaces(1, 2);
        for memory in [machine(24 * GIB, 20 * GIB), machine(4 * GIB, 2 * GIB), None] {
            let sizes = shares(&one, PoolSize::default(), memory).expect("enough");
            let shape = sizes[0].fitting(one[0].1[0][0]).expect("a pool").shape;
            assert_eq!((shape.chunks(), shape.limit()), (DEFAULT_CHUNKS, DEFAULT_CHUNK_SIZE));
        }
    }

    #[test]
    fn many_interfaces_and_queues_stay_within_the_budget() {
        for total in [GIB, 4 * GIB, 24 * GIB, 512 * GIB] {
            for count in [1, 2, 24, 60, 300, 1000] {
                for queues in [1, 2, 16, 128, 1024] {
                    let (all, memory) = (interfaces(count, queues), machine(total, total - total / 5));
                    let budget = memory.expect("it is known").budget();
                    let least = count as u64 * u64::from(queues) * 8 * 132 * 1024;
                    match shares(&all, PoolSize::default(), memory) {
                        Ok(sizes) => {
                            let taken = taken(&all, &sizes);
                            assert!(taken <= budget, "{count} * {queues} of {total}: {taken} of {budget}");
                            let usual = count as u64
                                * PoolSize::default().sum(&all[0].1[0], PoolSize::usual).unwrap();
                            assert!(
                                2 * taken >= budget.min(usual),
                                "{count} * {queues} of {total}: only {taken}"
                            );
                        }
                        Err(_) => assert!(least > budget, "{count} * {queues} of {total}"),
                    }
                }
            }
        }
    }

    #[test]
    fn whoever_takes_little_gets_it_and_the_others_the_same() {
        let want = |usual, least| Want { usual, least };
        let wants = [want(10, 1), want(500, 1), want(900, 1), want(90, 60)];
        assert_eq!(divide(&wants, 2000).unwrap(), [10, 500, 900, 90]);
        assert_eq!(divide(&wants, 300).unwrap(), [10, 100, 100, 90]);
        assert_eq!(divide(&wants, 100).unwrap(), [10, 15, 15, 60]);
        assert_eq!(divide(&wants, 63).unwrap(), [1, 1, 1, 60]);
        assert_eq!(divide(&wants, 62), None);
        assert_eq!(divide(&[], 0).map(|shares| shares.len()), Some(0));
    }

    #[test]
    fn what_is_tried_later_stays_within_the_budget_too() {
        // One receive queue, or sixteen CPUs, or a ring.
        let any = vec![
            vec![need(1, 4096)],
            vec![need(16, 65_549)],
            vec![Need { buffers: KernelBuffers { usual: 32 * MIB, least: MIB }, ..need(1, 65_549) }],
        ];
        let all = vec![("eth0", any); 40];
        let memory = machine(24 * GIB, 16 * GIB);
        let sizes = shares(&all, PoolSize::default(), memory).expect("enough");
        assert!(taken(&all, &sizes) <= 2 * GIB);
    }

    /// Returns `count` interfaces with a ring each.
    fn with_rings(count: usize) -> Vec<(&'static str, Alternatives)> {
        let buffers = KernelBuffers { usual: 32 * MIB, least: MIB };
        vec![("eth0", vec![vec![Need { buffers, ..need(1, 65_549) }]]); count]
    }

    #[test]
    fn rings_shrink_with_the_pools_of_many_interfaces() {
        let memory = machine(24 * GIB, 16 * GIB);
        let of = |count, size, memory| {
            let all = with_rings(count);
            let sizes = shares(&all, size, memory).expect("enough");
            let planned = sizes[0].fitting(all[0].1[0][0]).expect("a pool");
            assert!(size.chunks.is_some() || taken(&all, &sizes) <= 2 * GIB);
            (planned.buffers / MIB, planned.shape.chunks(), planned.shape.limit())
        };
        let default = PoolSize::default();
        for (count, usual) in [
            (1, (32, 64, 1 << 20)),
            (16, (32, 64, 1 << 20)),
            (64, (8, 22, 1 << 20)),
            (100, (4, 15, 1 << 20)),
            (300, (2, 8, 512 << 10)),
            (900, (1, 9, 64 << 10)),
        ] {
            assert_eq!(of(count, default, memory), usual, "{count}");
        }
        // On a small machine, too.
        assert_eq!(of(100, default, machine(4 * GIB, 3 * GIB)), (1, 8, 256 << 10));
        // Pools that are asked for are never smaller. The rings share what a capture may use.
        let asked = PoolSize { chunks: Some(8), chunk_size: Some(256 << 10), ..default };
        for (count, ring) in [(1, 32), (64, 32), (100, 16), (300, 4)] {
            assert_eq!(of(count, asked, memory), (ring, 8, 256 << 10), "{count}");
        }
        // Little is left beside these.
        let asked = PoolSize { chunks: Some(64), chunk_size: Some(1 << 20), ..default };
        assert_eq!(of(200, asked, memory), (4, 64, 1 << 20));
        let error = shares(&with_rings(300), asked, memory).expect_err("too much");
        assert_eq!(error.hint().as_deref(), Some("try 32 chunks of 1 MiB per queue"));
    }

    #[test]
    fn two_sources_of_one_interface_share_what_it_may_have() {
        let (one, other) = (vec![vec![need(1, 4096)]], vec![vec![need(8, 65_549)]]);
        let size = PoolSize { memory: Some(128 * MIB), ..PoolSize::default() };
        let sizes = shares_of([one.clone(), other.clone()], size).expect("enough");
        let taken = taken(&[("eth0", one.clone()), ("eth0", other.clone())], &sizes);
        assert!(taken <= 128 * MIB && taken > 100 * MIB, "{taken}");
        let usual = shares_of([one, other], PoolSize::default()).expect("enough");
        assert!(usual.iter().all(|size| size.memory.is_none()));
    }

    #[test]
    fn what_is_asked_for_is_judged_as_a_whole_and_what_fits_is_said() {
        let memory = machine(24 * GIB, 6 * GIB);
        let asked = |pool| {
            let (chunks, chunk_size) = pool_of(pool, None);
            PoolSize { chunks: Some(chunks), chunk_size: Some(chunk_size), ..PoolSize::default() }
        };
        let all = interfaces(60, 2);
        assert_eq!(shares(&all, asked(32 * MIB), memory).expect("enough").len(), 60);
        let error = shares(&all, asked(64 * MIB), memory).expect_err("too much");
        let said = "cannot capture on 60 interfaces: 7.9 GiB is needed, but 6 GiB is available, of which 1.5 GiB is kept in reserve";
        assert_eq!(error.to_string(), said);
        let advice = |error: Error| error.hint().expect("advice");
        assert_eq!(advice(error), "try 32 chunks of 1 MiB per queue");
        // It fits, and the next size does not.
        assert!(shares(&all, asked(4 * MIB), machine(GIB, GIB)).is_ok());
        let error = shares(&all, asked(8 * MIB), machine(GIB, GIB)).expect_err("too much");
        assert_eq!(advice(error), "try 8 chunks of 512 KiB per queue");
        // Nothing fits.
        let error = shares(&interfaces(1, 2), asked(8 * MIB), machine(GIB, 0)).expect_err("nothing");
        assert!(error.to_string().starts_with("cannot capture on `eth0`: "), "{error}");
    }

    #[test]
    fn a_budget_that_is_asked_for_is_kept_or_refused() {
        let (all, memory) = (interfaces(60, 2), machine(24 * GIB, 6 * GIB));
        let of = |memory| PoolSize { memory: Some(memory), ..PoolSize::default() };
        let sizes = shares(&all, of(200 * MIB), memory).expect("enough");
        assert!(taken(&all, &sizes) <= 200 * MIB);
        let error = shares(&all, of(64 * MIB), memory).expect_err("too little");
        let said = "cannot capture on 60 interfaces: at least 123.7 MiB is needed, but the capture may use only 64 MiB";
        assert_eq!(error.to_string(), said);
        assert!(matches!(error, Error::Budget { enough, .. } if enough == 124 * MIB), "{error:?}");
        assert!(shares(&all, of(124 * MIB), memory).is_ok());
        // To the byte, of the budget and of the machine.
        let Error::Budget { least, .. } = error else { unreachable!() };
        let sizes = shares(&all, of(least), memory).expect("just enough");
        assert_eq!(taken(&all, &sizes), least);
        assert!(matches!(shares(&all, of(least - 1), memory), Err(Error::Budget { .. })));
        let usable = memory.expect("it is known").usable();
        let sizes = shares(&all, of(usable), memory).expect("just enough");
        assert!(taken(&all, &sizes) <= usable);
        let too_much = shares(&interfaces(60, 200), of(usable + 1), memory);
        assert!(matches!(too_much, Err(Error::Memory { .. })), "{too_much:?}");
        let error = shares(&all, of(100 * GIB), memory).expect_err("too much");
        assert!(
            matches!(error, Error::Memory { fit: Some(Fit::Memory(fit)), .. } if fit == 4608 * MIB),
            "{error:?}"
        );
        assert!(shares(&all, of(4608 * MIB), memory).is_ok());
        // All available memory may be too little for the smallest pools.
        let error =
            shares(&interfaces(1000, 16), PoolSize::default(), machine(GIB, GIB)).expect_err("too many");
        assert!(error.hint().is_some_and(|hint| hint.contains("`any`")), "{error}");
    }

    #[test]
    fn chunks_of_a_size_that_is_asked_for_become_fewer_and_not_smaller() {
        let size = PoolSize { chunk_size: Some(4 << 20), memory: Some(64 * MIB), ..PoolSize::default() };
        let shape = size.fitting(need(2, 65_549)).expect("a pool").shape;
        assert_eq!((shape.chunks(), shape.limit()), (7, 4 << 20));
    }

    #[test]
    fn control_groups_of_both_versions_tell_what_is_available() {
        let directory = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(directory.path().join(file), text).unwrap();
        assert_eq!(control_group(directory.path()), None);
        write("memory.max", "max\n");
        write("memory.current", "700\n");
        write(
            "memory.stat",
            "anon 300\ninactive_file 100\nactive_file 50\nslab_reclaimable 10\ntotal_inactive_file 600\n",
        );
        assert_eq!(control_group(directory.path()), None);
        write("memory.max", "1000\n");
        assert_eq!(control_group(directory.path()), machine(1000, 460));
        fs::remove_file(directory.path().join("memory.max")).unwrap();
        write("memory.limit_in_bytes", "900\n");
        write("memory.usage_in_bytes", "800\n");
        assert_eq!(control_group(directory.path()), machine(900, 700));

        let levels =
            |line| levels_of(line).into_iter().map(|level| level.display().to_string()).collect::<Vec<_>>();
        assert_eq!(levels("0::/a/b"), ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/"]);
        assert_eq!(levels("4:memory:/a"), ["/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory/"]);
        assert!(levels("3:cpuset:/a").is_empty() && levels("nonsense").is_empty());
    }

    #[test]
    fn the_machine_tells_its_memory() {
        let memory = super::machine().expect("/proc/meminfo");
        assert!(memory.available > 0 && memory.available <= memory.total);
        // Not what is available, which changes at any moment.
        assert!(Memory::now().expect("memory").total <= memory.total);
    }
}
