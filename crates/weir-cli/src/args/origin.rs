//! The source of packets.

use std::num::NonZeroU32;

use clap::{Args, ValueEnum};
use weir::send::MARK;
use weir::{Builder, Capture, Mode, Sample, SourceChoice, Timestamps};

use crate::failure::Failure;
use crate::interfaces::{self, Chosen};
use crate::{cut_off, grant};

/// Where packets come from; the same for each command that captures.
#[derive(Debug, Args)]
#[command(next_help_heading = "Capture")]
pub(crate) struct OriginArgs {
    /// Interface, or `any` for all; may be repeated.
    ///
    /// `-i eth0,eth1` are two interfaces. NAMESPACE/IF names an interface in another network
    /// namespace; a number is its position in the list of `weir capture -D`. IF@0-3 captures only on
    /// receive queues 0 to 3, IF@2 only on queue 2, with the xdp and af_xdp sources. Default: the
    /// first interface that is up and is not loopback.
    #[arg(short, long = "interface", value_name = "IF", allow_hyphen_values = true)]
    pub(crate) interfaces: Vec<String>,

    /// Capture in this namespace; may be repeated.
    ///
    /// NS is a name known to `ip netns` or Docker, the PID of a process in the namespace, or a
    /// path. With several namespaces, weir captures on each interface in each of them.
    #[arg(long = "netns", value_name = "NS")]
    pub(crate) namespaces: Vec<String>,

    /// With `-i any`, capture a frame again on each bridge, bond or VLAN it passes.
    ///
    /// By default weir captures each frame once, on the lowest interface.
    #[arg(hide_short_help = true, long)]
    stacked: bool,

    /// Set the source.
    #[arg(long, value_enum, default_value_t)]
    source: SourceArg,

    /// Capture a sample of the packets that match the filter: 1/100, p=0.01 or flow:1/100.
    ///
    /// 1/N captures the first packet of each queue and every Nth after it, so a queue with C packets gives C/N,
    /// rounded up. A queue belongs to a receive queue or a CPU; with af_packet there is one. p=P captures each packet
    /// with probability P. flow:1/N captures all packets of one in N flows, in both directions; which ones is drawn
    /// anew for each capture. The other packets are counted as sampled out and go on to the host, with --mode exclusive
    /// too. A pcapng file says how its packets were sampled.
    #[arg(hide_short_help = true, long, value_name = "SAMPLE", allow_hyphen_values = true)]
    sample: Option<Sample>,

    /// Leave out packets that weir itself sends.
    ///
    /// weir marks what it sends (`weir replay --mark`). Packets with that mark are counted as filtered. Only the source tc
    /// sees marks, and xdp+tc those of sent packets. The kernel clears the mark when a packet leaves the network
    /// namespace: what weir has sent in another one, or on another host, is captured.
    #[arg(hide_short_help = true, long)]
    no_own: bool,

    /// Split TCP super-frames built by offloads into the segments on the wire.
    ///
    /// Checksums are filled in.
    #[arg(hide_short_help = true, long)]
    segment: bool,

    /// Set if the host gets packets too.
    #[arg(long, value_enum, default_value_t)]
    mode: ModeArg,

    #[arg(hide_short_help = true, long, help = cut_off::FORCE)]
    force: bool,

    /// Select how packets are timestamped.
    ///
    /// Default: kernel; with weir count, none unless --order time or --check is given.
    #[arg(hide_short_help = true, long, value_name = "KIND", value_enum)]
    timestamps: Option<TimestampsArg>,

    /// Do not enable promiscuous mode.
    ///
    /// `-i any` never enables it.
    #[arg(short = 'p', long)]
    pub(crate) no_promiscuous_mode: bool,
}

impl OriginArgs {
    /// Checks that the user may request this.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.mode {
            ModeArg::Exclusive => grant::more_than_capture("use --mode exclusive"),
            ModeArg::Pass => Ok(()),
        }
    }

    /// Returns which packets are captured, if not all.
    pub(crate) fn sample(&self) -> Option<Sample> {
        self.sample
    }

    /// Returns whether the connection of this shell may be cut off.
    pub(crate) fn is_forced(&self) -> bool {
        self.force
    }

    /// Returns whether packets have timestamps, where they have them by default.
    pub(crate) fn has_times(&self) -> bool {
        !matches!(self.timestamps, Some(TimestampsArg::None))
    }

    /// Returns the interfaces to capture on, unless the host would lose its own traffic.
    pub(crate) fn chosen(&self) -> Result<Vec<Chosen>, Failure> {
        let chosen = interfaces::chosen(&self.interfaces, &self.namespaces)?;
        if self.may_cut_off() {
            cut_off::check(&chosen)?;
        }
        Ok(chosen)
    }

    /// Returns whether the host may be cut off without the user's consent. Sources explain
    /// their own refusals.
    fn may_cut_off(&self) -> bool {
        let takes_all = matches!(self.source, SourceArg::Auto | SourceArg::Xdp | SourceArg::AfXdp);
        matches!(self.mode, ModeArg::Exclusive) && takes_all && !self.force
    }

    /// Returns a builder for this origin on `interfaces`, which were named or found.
    pub(crate) fn builder(&self, interfaces: &[Chosen], timestamps: Timestamps) -> Builder {
        let builder = Capture::builder()
            .source(self.source.into())
            .segment(self.segment)
            .mode(self.mode.into())
            .timestamps(self.timestamps.map_or(timestamps, Timestamps::from))
            .promiscuous(!self.no_promiscuous_mode)
            .stacked(self.stacked);
        let builder = self.sample.into_iter().fold(builder, Builder::sample);
        let own = NonZeroU32::new(MARK).filter(|_| self.no_own);
        let builder = own.into_iter().fold(builder, Builder::leave_out_mark);
        interfaces.iter().fold(builder, |builder, chosen| chosen.add_to(builder))
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum SourceArg {
    /// Choose a source; report which one and why.
    #[default]
    Auto,
    /// Fastest; received packets only.
    Xdp,
    /// Both directions.
    Tc,
    /// xdp for received packets, tc for sent ones.
    #[value(name = "xdp+tc")]
    XdpTc,
    /// Both directions; works everywhere.
    AfPacket,
    /// Requires --mode exclusive; zero-copy with driver support.
    AfXdp,
}

impl From<SourceArg> for SourceChoice {
    fn from(source: SourceArg) -> Self {
        match source {
            SourceArg::Auto => Self::Auto,
            SourceArg::Xdp => Self::Xdp,
            SourceArg::Tc => Self::Tc,
            SourceArg::XdpTc => Self::XdpTc,
            SourceArg::AfPacket => Self::AfPacket,
            SourceArg::AfXdp => Self::AfXdp,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum ModeArg {
    /// The host keeps its traffic.
    #[default]
    Pass,
    /// Packets that are taken go no further, for mirror ports; refused on interfaces with addresses of
    /// this host.
    Exclusive,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Pass => Self::Pass,
            ModeArg::Exclusive => Self::Exclusive,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TimestampsArg {
    /// One timestamp per packet.
    Kernel,
    /// One timestamp per batch; cheaper.
    Batch,
    /// No timestamps; cheapest.
    None,
}

impl From<TimestampsArg> for Timestamps {
    fn from(timestamps: TimestampsArg) -> Self {
        match timestamps {
            TimestampsArg::Kernel => Self::Kernel,
            TimestampsArg::Batch => Self::Batch,
            TimestampsArg::None => Self::None,
        }
    }
}
