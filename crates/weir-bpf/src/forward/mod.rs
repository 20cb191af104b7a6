//! Forwarding in the kernel or through AF_XDP sockets (`forward.bpf.c`).

pub mod stack;

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use libbpf_rs::libbpf_sys::bpf_insn;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle};
use weir_sys::CallError;
use weir_sys::bpf::XdpHook;
use weir_sys::bpf::pin::pin;

use crate::attached::Attached;
use crate::filter::{Body, Bound, Calls, Device, Gate, Hook, held};
use crate::layout::{self, get};
use crate::log::{LoadError, logged};
use crate::pool::{PoolMaps, PoolOptions, keep_maps, prepare, prepare_rules};
use crate::writers::Driven;
use crate::xdp::{HAS_FRAGMENTS, Kind, bind, reuse};
use crate::{Strays, leave_out_all};

skeleton!("forward");

use skeleton::types::account;

held!(maps of ForwardMaps, OpenForwardMaps: target, sockets, accounts, accounts_back, pending, strays, rodata);
// With `copies`, behind the others.
held!(pool_maps of ForwardMaps, OpenForwardMaps: pool, chunks, queues, orders, doorbell);

/// The constants of one direction.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The interface that receives.
    pub from: Driven,
    /// Receive queues that it can ever have.
    pub queues: u32,
    /// The same of the other interface, if what it receives is forwarded, too ([`Forward::load_back`]); otherwise 0.
    pub queues_back: u32,
    /// Packets may span several buffers; see [`crate::xdp::Options::fragments`].
    pub fragments: bool,
    /// Packets go to sockets ([`Forward::insert`]).
    pub to_sockets: bool,
    /// If there is no socket, or no longer one, packets go to the target.
    pub past_sockets: bool,
    /// Index of the interface whose driver is asked for stripped VLAN tags; the program is then bound to it.
    pub tags_of: Option<u32>,
    /// Whether rules can be in front, of a program that is not bound.
    pub rules: bool,
    /// The pool for a copy of forwarded packets.
    pub copies: Option<PoolOptions>,
}

/// The loaded programs of one direction. Forwarding starts once the target is set and the program is attached.
#[derive(Debug)]
pub struct Forward {
    program: Kind,
    shared: Shared,
    strays: MapHandle,
    queues: Queues,
    gate: Arc<Gate>,
    direction: u32,
    first_socket: u32,
    /// The programs that track redirected packets of both directions, attached while this lives or is pinned; those of the
    /// direction forth.
    witnesses: Vec<(&'static str, Link)>,
}

/// The maps that both directions have in common, so that the same programs can track the packets of both.
#[derive(Debug)]
struct Shared {
    target: MapHandle,
    sockets: MapHandle,
    pending: MapHandle,
    accounts: MapHandle,
    accounts_back: MapHandle,
}

/// The programs that track redirected packets, and the kernel's IDs of the maps that they ask for.
#[derive(Debug)]
pub struct Witnesses {
    /// Runs for `xdp_devmap_xmit`.
    pub sent: OwnedFd,
    /// Runs for `xdp_redirect_err`.
    pub refused: OwnedFd,
    /// The map of targets.
    pub target: u32,
    /// The map of sockets.
    pub sockets: u32,
}

/// The fate of one receive queue's packets (`struct account` in `forward.bpf.c`).
///
/// `seen = filtered + errors + forwarded + no_room + too_long + unable + handed + blocked + bounced`, apart from packets that are just
/// being handed to the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that reached the program.
    pub seen: u64,
    /// Packets that did not match the filter and were left to the stack.
    pub filtered: u64,
    /// Total length of the packets to be forwarded.
    pub bytes: u64,
    /// Packets that could not be processed, or whose other interface was gone.
    pub errors: u64,
    /// Packets accepted by the other interface's driver.
    pub forwarded: u64,
    /// Packets rejected by that driver for lack of room.
    pub no_room: u64,
    /// Packets longer than the other interface's MTU allows.
    pub too_long: u64,
    /// Packets lost because the other interface was down, or accepts no redirected packets.
    pub unable: u64,
    /// Packets accepted by the socket.
    pub handed: u64,
    /// Packets that went no further, by rules.
    pub blocked: u64,
    /// Packets that went back, by rules.
    pub bounced: u64,
}

/// The accounts of all receive queues.
#[derive(Debug)]
pub struct Queues {
    map: MapHandle,
}

/// The directions.
const FORTH: u32 = layout::forward_direction::FORTH.0;
const BACK: u32 = layout::forward_direction::BACK.0;

/// Names of the pinned objects.
const QUEUES: &str = "accounts";
const FILTERS: &str = "filters";
const OUTCOMES: &str = "outcomes";

impl Forward {
    /// Loads the programs, and returns the maps of the pool, if any. Call it in the namespace of the interface that
    /// receives.
    ///
    /// # Errors
    ///
    /// Missing privileges, or a kernel (with `tags_of`, a driver) without a function that the programs call.
    pub fn load(options: &Options) -> Result<(Self, Option<PoolMaps>), LoadError> {
        logged("forward", || Self::try_load(options, None))
    }

    /// The same for the direction back. This is the one forth, whose programs track the redirected packets of both, so it
    /// must be kept.
    ///
    /// # Errors
    ///
    /// See [`load`](Self::load).
    ///
    /// # Panics
    ///
    /// If this is the direction back itself.
    pub fn load_back(&self, options: &Options) -> Result<(Self, Option<PoolMaps>), LoadError> {
        assert_eq!(self.direction, FORTH, "the direction back is loaded by the one forth");
        logged("forward", || Self::try_load(options, Some(self)))
    }

    fn try_load(
        options: &Options,
        forth: Option<&Self>,
    ) -> Result<(Self, Option<PoolMaps>), libbpf_rs::Error> {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::ForwardSkelBuilder::default().open(&mut storage)?;
        let constants = match &options.copies {
            Some(pool) => prepare!(open, pool),
            None => {
                pool_maps::open(&mut open.maps).into_iter().try_for_each(|map| map.set_autocreate(false))?;
                open.maps.rodata_data.as_deref_mut().expect("the program has constants")
            }
        };
        constants.copies = options.copies.is_some();
        constants.fragments = options.fragments;
        constants.to_sockets = options.to_sockets;
        constants.past_them = options.past_sockets;
        let (direction, first_socket) = forth.map_or((FORTH, 0), |forth| (BACK, forth.queues.len()));
        (constants.direction, constants.first_socket) = (direction, first_socket);
        match forth {
            None => {
                open.maps.sockets.set_max_entries(options.queues + options.queues_back)?;
                open.maps.accounts.set_max_entries(options.queues)?;
                open.maps.accounts_back.set_max_entries(options.queues_back.max(1))?;
            }
            Some(Self { shared, .. }) => {
                open.maps.target.reuse_fd(shared.target.as_fd())?;
                open.maps.sockets.reuse_fd(shared.sockets.as_fd())?;
                open.maps.pending.reuse_fd(shared.pending.as_fd())?;
                open.maps.accounts.reuse_fd(shared.accounts.as_fd())?;
                open.maps.accounts_back.reuse_fd(shared.accounts_back.as_fd())?;
                open.progs.sent.set_autoload(false);
                open.progs.refused.set_autoload(false);
            }
        }
        let flags = if options.fragments { HAS_FRAGMENTS } else { 0 };
        prepare_rules!(open, options.rules, ruled);
        let progs = &mut open.progs;
        progs.ruled.set_flags(flags);
        for program in [&mut progs.forward, &mut progs.wanted, &mut progs.unwanted] {
            program.set_autoload(options.tags_of.is_none());
            program.set_flags(flags);
        }
        progs.filter_tagged.set_autoload(false);
        let device = options.tags_of.map(|index| Device { index, fragments: options.fragments });
        match device {
            None => progs.forward_tagged.set_autoload(false),
            Some(device) => bind(&mut progs.forward_tagged, device)?,
        }

        let mut loaded = open.load()?;
        let shared = Shared {
            target: MapHandle::try_from(&loaded.maps.target)?,
            sockets: MapHandle::try_from(&loaded.maps.sockets)?,
            pending: MapHandle::try_from(&loaded.maps.pending)?,
            accounts: MapHandle::try_from(&loaded.maps.accounts)?,
            accounts_back: MapHandle::try_from(&loaded.maps.accounts_back)?,
        };
        let strays = MapHandle::try_from(&loaded.maps.strays)?;
        // libbpf maps them if the kernel supports it. It probes only once, and takes any failure for a no.
        let variables = loaded.maps.bss_data.as_deref_mut();
        let variables = variables.ok_or_else(|| io::Error::other("its variables cannot be mapped"))?;
        variables.target_id = shared.target.info()?.info.id;
        variables.sockets_id = shared.sockets.info()?.info.id;
        let witnesses = match forth {
            None => vec![("sent", loaded.progs.sent.attach()?), ("refused", loaded.progs.refused.attach()?)],
            Some(_) => Vec::new(),
        };
        let accounts = if direction == FORTH { &shared.accounts } else { &shared.accounts_back };
        let queues = Queues { map: MapHandle::try_from(accounts)? };
        let (program, gate) = match device {
            Some(device) => {
                let mut held = maps::loaded(&loaded.maps).to_vec();
                let copies = options.copies.is_some();
                if copies {
                    held.extend(pool_maps::loaded(&loaded.maps));
                }
                let plain = loaded.progs.forward_tagged.as_fd();
                let bound = Bound::new(Body::Forward { copies }, device, plain, &held)?;
                (Kind::Bound(bound.clone()), Gate::Bound(bound))
            }
            None => {
                let interface = options.from.only();
                let hook = Hook::Xdp { fragments: options.fragments, interface };
                let (maps, progs) = (&loaded.maps, &loaded.progs);
                let ruled = options.rules.then(|| (progs.ruled.as_fd(), maps.rulings.as_fd()));
                let (wanted, unwanted) = (&progs.wanted, &progs.unwanted);
                let calls =
                    Calls::one(hook, &maps.filters, &maps.outcomes, wanted, unwanted, ruled)?.forwarding();
                let program = loaded.progs.forward.as_fd().try_clone_to_owned()?;
                (Kind::Free(program), Gate::Calls(calls))
            }
        };
        let gate = Arc::new(gate);
        let pool = match &options.copies {
            Some(pool) => Some(keep_maps!(loaded, pool, Arc::clone(&gate))),
            None => None,
        };
        Ok((Self { program, shared, strays, queues, gate, direction, first_socket, witnesses }, pool))
    }

    /// Sets the target: the interface with this index in the calling thread's namespace.
    ///
    /// # Errors
    ///
    /// `EINVAL`: there is no such interface.
    pub fn set_target(&self, interface: u32) -> Result<(), CallError> {
        let set =
            self.shared.target.update(&self.direction.to_ne_bytes(), &interface.to_ne_bytes(), MapFlags::ANY);
        set.map_err(|error| {
            CallError::new(format!("forward to interface {interface}"), io::Error::other(error))
        })
    }

    /// Sends the packets of `queue` to `socket`, which must be bound to that queue, until the socket is closed.
    ///
    /// # Errors
    ///
    /// `E2BIG`: there is no such queue. `EOPNOTSUPP`: this is no AF_XDP socket.
    pub fn insert(&self, queue: u32, socket: impl AsFd) -> Result<(), CallError> {
        let fd = socket.as_fd().as_raw_fd().to_ne_bytes();
        let index = self.first_socket + queue;
        let set = self.shared.sockets.update(&index.to_ne_bytes(), &fd, MapFlags::ANY);
        set.map_err(|error| {
            CallError::new(format!("redirect queue {queue} to a socket"), io::Error::other(error))
        })
    }

    /// Attaches the program, like [`crate::xdp::Program::attach`].
    ///
    /// # Errors
    ///
    /// The errors of that function.
    pub fn attach(&self, interface: u32, hook: XdpHook) -> Result<Arc<Attached>, CallError> {
        self.program.attach(interface, hook)
    }

    /// Returns the gate that installs a filter.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Returns the packets whose driver could not tell whether it stripped a VLAN tag, and those on queues that the
    /// pool of copies lacks.
    pub fn strays(&self) -> Strays {
        Strays::read(&self.strays)
    }

    /// Returns the accounts.
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Returns the programs that track redirected packets, to run them in a test.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    ///
    /// # Panics
    ///
    /// If this is the direction back, which has none.
    pub fn witnesses(&self) -> Result<Witnesses, libbpf_rs::Error> {
        let [(_, sent), (_, refused)] = &self.witnesses[..] else {
            panic!("the direction back has no witnesses")
        };
        let program = |link: &Link| libbpf_rs::Program::fd_from_id(link.info()?.prog_id);
        Ok(Witnesses {
            sent: program(sent)?,
            refused: program(refused)?,
            target: self.shared.target.info()?.info.id,
            sockets: self.shared.sockets.info()?.info.id,
        })
    }

    /// Returns the program that is attached, to run it in a test.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Pins in `directory`, which is in a bpffs, what the kernel needs to keep forwarding without this process, except
    /// for the program's own link.
    ///
    /// # Errors
    ///
    /// The errors of [`pin`].
    pub fn pin(&self, directory: &Path) -> Result<(), CallError> {
        let pin = |name: &str, object| pin(object, &directory.join(name));
        self.witnesses.iter().try_for_each(|(name, link)| pin(name, link.as_fd()))?;
        pin(QUEUES, self.queues.map.as_fd())?;
        // The kernel empties program arrays that are neither held nor pinned.
        let Gate::Calls(calls) = &*self.gate else { return Ok(()) };
        pin(FILTERS, calls.filters())?;
        pin(OUTCOMES, calls.outcomes())
    }
}

/// Passes the program, with its `maps`, to `then`, which puts a filter inside.
pub(crate) fn around<R>(
    device: Device,
    maps: &[OwnedFd],
    then: impl FnOnce(&[bpf_insn]) -> R,
) -> Result<R, LoadError> {
    logged("forward with a filter", || {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::ForwardSkelBuilder::default().open(&mut storage)?;
        leave_out_all(open.open_object_mut())?;
        let (held, pool) = maps.split_at(maps::COUNT);
        reuse(held, maps::open(&mut open.maps))?;
        if !pool.is_empty() {
            reuse(pool, pool_maps::open(&mut open.maps))?;
        }
        bind(&mut open.progs.filter_tagged, device)?;
        Ok(then(open.load()?.progs.filter_tagged.insns()))
    })
}

impl Queues {
    /// Opens the accounts that [`Forward::pin`] has pinned in `directory`.
    ///
    /// # Errors
    ///
    /// `ENOENT`: nothing is pinned there. Accounts of another size: they are another version's.
    pub fn pinned(directory: &Path) -> Result<Self, CallError> {
        let path = directory.join(QUEUES);
        let failed = |error| CallError::new(format!("open {}", path.display()), error);
        let map = MapHandle::from_pinned_path(&path).map_err(|error| failed(io::Error::other(error)))?;
        Self::of(map).map_err(failed)
    }

    /// Returns the accounts in a map, which another version of weir may have made.
    fn of(map: MapHandle) -> io::Result<Self> {
        if map.value_size() as usize != size_of::<account>() {
            return Err(io::Error::other("it was made by another version of weir"));
        }
        Ok(Self { map })
    }

    /// Returns the number of receive queues.
    pub fn len(&self) -> u32 {
        self.map.max_entries()
    }

    /// Returns false: a device has at least one queue.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the account of receive queue `queue`.
    ///
    /// # Errors
    ///
    /// `ENOENT`: there is no such queue.
    pub fn counters(&self, queue: u32) -> Result<Counters, CallError> {
        let value = self.map.lookup(&queue.to_ne_bytes(), MapFlags::ANY);
        let failed = |error| CallError::new(format!("read the counters of queue {queue}"), error);
        let value = value.map_err(|error| failed(io::Error::other(error)))?;
        let value = value.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        Ok(Counters {
            seen: get!(&value, account.seen),
            filtered: get!(&value, account.filtered),
            bytes: get!(&value, account.bytes),
            errors: get!(&value, account.errors),
            forwarded: get!(&value, account.forwarded),
            no_room: get!(&value, account.no_room),
            too_long: get!(&value, account.too_long),
            unable: get!(&value, account.unable),
            handed: get!(&value, account.handed),
            blocked: get!(&value, account.blocked),
            bounced: get!(&value, account.bounced),
        })
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::MapType;
    use libbpf_rs::libbpf_sys::bpf_map_create_opts;

    use super::*;

    #[test]
    fn accounts_of_another_size_are_those_of_another_version() {
        let options =
            bpf_map_create_opts { sz: size_of::<bpf_map_create_opts>() as u64, ..Default::default() };
        let size = u32::try_from(size_of::<account>()).expect("small");
        let map = |size| MapHandle::create(MapType::Array, Some("accounts"), 4, size, 2, &options);
        let (ours, other) = match (map(size), map(size - 8)) {
            (Ok(ours), Ok(other)) => (ours, other),
            (Err(error), _) | (_, Err(error)) => return weir_skip::this_test(error),
        };
        let error = Queues::of(other).expect_err("it has other accounts").to_string();
        assert_eq!(error, "it was made by another version of weir");
        let ours = Queues::of(ours).expect("our own size");
        assert_eq!(ours.counters(1).expect("a queue"), Counters::default());
        ours.counters(2).expect_err("there is no such queue");
    }
}
