//! One direction: the program on the receiving interface, and its account.

use std::path::Path;
use std::sync::Arc;

use weir_bpf::forward::{Forward as Programs, Options};
use weir_bpf::xdp::Attached;
use weir_sys::bpf::XdpHook;
use weir_sys::xsk::XskSocket;

use super::copy::Copy;
use super::endpoint::{self, Endpoint};
use super::stats::{DirectionStats, ForwardCounters, ForwardQueue};
use super::{DirectionInfo, OnExit, pins};
use crate::filter::Receiver;
use crate::live::capture::interface::CaptureInterface;
use crate::live::error::{Problem, command, not_loaded};
use crate::live::filter_control::{FilterTarget, Gate};
use crate::live::interface::{Device, Tags};
use crate::live::source::programmed::{self, AtGateInForce};
use crate::live::source::xdp;
use crate::{Error, Filter};

/// Forwarding in one direction.
#[derive(Debug)]
pub(super) struct OneDirection {
    /// The indexes of the receiving and the sending end.
    endpoints: [usize; 2],
    programs: Programs,
    attached: Option<Arc<Attached>>,
    /// The filter in force.
    in_force: AtGateInForce,
    pub(super) receiver: Receiver,
    pub(super) notes: Vec<String>,
    filter: Option<String>,
}

/// What decides which packets are forwarded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Front<'a> {
    /// A filter, if there is one, which is put in place.
    Filter(Option<&'a Filter>),
    /// Rules, which are put there later.
    Rules,
}

/// Whether packets are forwarded both ways, and which of them is loaded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Both<'a> {
    No,
    Forth,
    /// After that one.
    Back(&'a OneDirection),
}

impl OneDirection {
    /// Loads the programs with the filter in place, and the pool if packets are copied. `both`: the way forth is loaded
    /// for both, or has been, if this is the way back.
    pub(super) fn load(
        endpoints: [usize; 2],
        [from, to]: [&Endpoint; 2],
        both: Both<'_>,
        front: Front<'_>,
        sockets: Option<OnExit>,
        copy: Option<Copy<'_>>,
        lose_tags: bool,
    ) -> Result<(Self, Option<CaptureInterface>), Error> {
        let (device, name) = (&from.device, from.name());
        let (filter, rules) = match front {
            Front::Filter(filter) => (filter, false),
            Front::Rules => (None, true),
        };
        let told = |doubt: Error| format!("{doubt}; {}", doubt.hint().unwrap_or_default());
        let mut notes: Vec<String> = endpoint::doubts(from, to).map(told).collect();
        // Bound to the device, so that it can ask the driver for stripped tags.
        // A bound program has no rules in front.
        let bound = matches!(device.tags, Tags::Told(_)) && !rules;
        let options = Options {
            from: device.driven(),
            queues: queues_of(from),
            queues_back: if matches!(both, Both::Forth) { queues_of(to) } else { 0 },
            fragments: takes_fragments(device),
            to_sockets: sockets.is_some(),
            // After the process has ended, the kernel either forwards packets itself or nothing does.
            past_sockets: sockets != Some(OnExit::Closed),
            tags_of: bound.then_some(device.link.index),
            rules,
            copies: copy.as_ref().map(Copy::options),
        };
        let load = |options: &Options| {
            from.inside(|| match both {
                Both::Back(forth) => forth.programs.load_back(options),
                Both::Forth | Both::No => Programs::load(options),
            })
        };
        let (programs, bound) = match load(&options)? {
            Err(error) if bound && !error.is_permission() && !error.is_memory() => {
                (load(&Options { tags_of: None, ..options })?, false)
            }
            other => (other, bound),
        };
        let (programs, maps) = programs.map_err(|error| not_loaded(name, error))?;
        if !bound && device.tags != Tags::InFrame {
            keeps_tags(from, filter, lose_tags)?;
            notes.push(format!(
                "the driver of `{name}` strips VLAN tags and does not report them to XDP: tagged packets lose \
                 their tags, as requested"
            ));
        }
        let receiver = Receiver { tags_lost: !bound && device.tags != Tags::InFrame, ..device.receiver()? };
        let target = to.index();
        let programs = to.inside(move || programs.set_target(target).map(|()| programs))??;
        let in_force = AtGateInForce::default();
        from.inside(|| programmed::put_first(name, programs.gate(), &in_force, device, filter))??;
        let port = copy.zip(maps).map(|(copy, maps)| copy.port(from, maps, &in_force)).transpose()?;
        let filter = filter.map(Filter::label);
        let direction = Self { endpoints, programs, attached: None, in_force, receiver, notes, filter };
        Ok((direction, port))
    }

    /// Attaches the program to the receiving interface.
    pub(super) fn attach(&mut self, from: &Endpoint) -> Result<(), Error> {
        let (programs, index) = (&self.programs, from.index());
        let attached = from.inside(|| programs.attach(index, XdpHook::Native))?;
        let too_long = xdp::takes_fragments(&from.device) && !takes_fragments(&from.device);
        let refused = |error| match xdp::refused(&from.device, error) {
            error @ Error::Unsupported { .. } if too_long => {
                let what = format!(
                    "{error}; this kernel cannot redirect multi-buffer packets, which an MTU of {} allows",
                    from.device.link.mtu
                );
                let (inside, device) = command::place(from.name());
                let remedy = format!(
                    "use a smaller MTU (with veth, at both ends: {inside}ip link set {device} mtu 3498), or Linux 6.3 or later"
                );
                Error::Forward(Problem::new(what, remedy))
            }
            error => endpoint::refused(error),
        };
        self.attached = Some(attached.map_err(refused)?);
        Ok(())
    }

    /// Pins everything in `directory`, so that it continues without this process.
    pub(super) fn pin(&mut self, directory: &Path) -> Result<(), Error> {
        self.programs.pin(directory)?;
        let attached = self.attached.as_ref().expect("it is attached");
        Ok(attached.pin(&directory.join(pins::LINK))?)
    }

    pub(super) fn from(&self) -> usize {
        self.endpoints[0]
    }

    pub(super) fn to(&self) -> usize {
        self.endpoints[1]
    }

    /// Redirects packets of a queue to a socket.
    pub(super) fn insert(&self, queue: u32, socket: &XskSocket) -> Result<(), Error> {
        Ok(self.programs.insert(queue, socket)?)
    }

    /// Describes the direction; `how` says what forwards its packets.
    pub(super) fn info(&self, endpoints: &[Endpoint; 2], how: &str) -> DirectionInfo {
        let [from, to] = self.endpoints.map(|endpoint| &endpoints[endpoint]);
        let queues = from.device.rx_queues;
        let queues = format!("{queues} {}", if queues == 1 { "queue" } else { "queues" });
        DirectionInfo {
            from: from.name().to_owned(),
            to: to.name().to_owned(),
            detail: format!("native XDP, {queues}, {how}"),
            notes: self.notes.clone(),
            filter: self.filter.clone(),
        }
    }

    /// Returns where its filter is, or rules in its place.
    pub(super) fn gate(&self) -> Arc<weir_bpf::filter::Gate> {
        Arc::clone(self.programs.gate())
    }

    /// Returns the place where its filter is changed.
    pub(super) fn filter_target(&self, from: &Endpoint, id: u32) -> (FilterTarget, Arc<dyn Gate>) {
        let target = FilterTarget { interface: id, name: from.name().to_owned(), receiver: self.receiver };
        (target, programmed::gate_of(from.name(), self.programs.gate(), &self.in_force))
    }

    /// Returns its account; `add` adds what a thread did with the packets of a queue.
    pub(super) fn stats(
        &self,
        endpoints: &[Endpoint; 2],
        add: impl Fn(u32, &mut ForwardCounters),
    ) -> Result<DirectionStats, Error> {
        let [from, to] = self.endpoints.map(|endpoint| &endpoints[endpoint]);
        let mut queues = queues(self.programs.queues())?;
        for ForwardQueue { queue, counters } in &mut queues {
            add(*queue, counters);
        }
        Ok(DirectionStats {
            tag_unknown: self.programs.strays().tag_unknown,
            from: from.name().to_owned(),
            to: to.name().to_owned(),
            queues,
            nic: Some(from.nic()),
            sender: Some(endpoint::losses_sending(to)),
        })
    }

    /// Detaches the program.
    pub(super) fn detach(&mut self) -> Result<(), Error> {
        Ok(self.attached.take().map_or(Ok(()), |attached| programmed::off(attached.detach()))?)
    }
}

/// Checks that nobody misses the VLAN tags of an interface whose driver strips them and does not report them.
pub(super) fn keeps_tags(from: &Endpoint, filter: Option<&Filter>, lose_tags: bool) -> Result<(), Error> {
    let device = &from.device;
    let lost = |filtered| {
        Err(Error::ForwardTags { name: from.name().to_owned(), keep: device.leave_tags(), filtered })
    };
    match filter {
        _ if !lose_tags => lost(false),
        Some(filter) if filter.compile(device.receiver()?)?.asks_for_tags() => lost(true),
        _ => Ok(()),
    }
}

/// Returns whether packets in several buffers are accepted. Linux can redirect them since 6.3, which is also the
/// version that began to report driver features. Older kernels drop them silently.
fn takes_fragments(device: &Device) -> bool {
    device.abilities.is_some() && xdp::takes_fragments(device)
}

/// Returns how many receive queues the device can have, not just those in use, so that every packet is counted.
fn queues_of(endpoint: &Endpoint) -> u32 {
    endpoint.device.link.rx_queues.max(endpoint.device.rx_queues)
}

/// Reads the counters of all receive queues.
pub(super) fn queues(queues: &weir_bpf::forward::Queues) -> Result<Vec<ForwardQueue>, Error> {
    (0..queues.len())
        .map(|queue| Ok(ForwardQueue { queue, counters: ForwardCounters::of(queues.counters(queue)?) }))
        .collect()
}
