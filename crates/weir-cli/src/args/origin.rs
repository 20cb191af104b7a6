//! Where packets come from.

use clap::{Args, ValueEnum};
use weir::{Builder, Capture, Mode, SourceChoice, Timestamps};

use crate::failure::Failure;
use crate::grant;
use crate::interfaces::Chosen;

/// Where packets come from; the same for each command that captures.
#[derive(Debug, Args)]
#[command(next_help_heading = "What to capture")]
pub(crate) struct OriginArgs {
    /// Interface, or `any` for all of them; NAMESPACE/IF for one in another network namespace. May be repeated. Without
    /// it: the first one that is up and is not loopback.
    #[arg(short, long = "interface", value_name = "IF")]
    pub(crate) interfaces: Vec<String>,

    /// Network namespace in which the interfaces are: a name of `ip netns` or Docker, the number of a process in it, or a
    /// path. May be repeated: then each interface is captured in each.
    #[arg(long = "netns", value_name = "NS")]
    pub(crate) namespaces: Vec<String>,

    /// With `-i any`: a frame that passes a bridge, bond or VLAN also there, not only at the lowest interface.
    #[arg(long)]
    stacked: bool,

    /// What takes the packets: xdp (fastest, what arrives), tc (both directions), xdp+tc (each for one), af_packet
    /// (works everywhere), af_xdp (with --mode exclusive; zero-copy where the driver has it), or auto, which says what it
    /// chose and why.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    source: SourceArg,

    /// Capture TCP super-frames, which offloads build, as the segments that the wire carries, checksums filled in.
    #[arg(long)]
    segment: bool,

    /// Attach the tc source as on a kernel without tcx, by filters of a clsact discipline.
    #[arg(long, hide = true)]
    tc_filters: bool,

    /// pass: the host keeps its traffic. exclusive: captured packets go no further; for mirror ports. An interface that has
    /// addresses of this host is refused then.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    mode: ModeArg,

    /// With --mode exclusive: take an interface that has addresses of this host all the same, and cut these off.
    #[arg(long)]
    force: bool,

    /// Time stamps: kernel (one per packet), batch (one per batch, cheaper) or none (cheapest).
    #[arg(long, value_name = "KIND", value_enum, hide_possible_values = true)]
    timestamps: Option<TimestampsArg>,

    /// Leave the interface out of promiscuous mode (`any` never asks for it).
    #[arg(short = 'p', long)]
    pub(super) no_promiscuous_mode: bool,
}

impl OriginArgs {
    /// Whether whoever runs weir may ask for this.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.mode {
            ModeArg::Exclusive => grant::more_than_capture("use --mode exclusive"),
            ModeArg::Pass => Ok(()),
        }
    }

    /// Whether packets get times, where they do unless somebody says otherwise.
    pub(super) fn has_times(&self) -> bool {
        !matches!(self.timestamps, Some(TimestampsArg::None))
    }

    /// Whether the host may lose what arrives for its own addresses, and nobody has said that it should. What sources refuse by
    /// themselves is theirs to explain.
    pub(crate) fn may_cut_off(&self) -> bool {
        let takes_all = matches!(self.source, SourceArg::Auto | SourceArg::Xdp | SourceArg::AfXdp);
        matches!(self.mode, ModeArg::Exclusive) && takes_all && !self.force
    }

    /// A builder for this origin on `interfaces`, which are the ones asked for or the one found.
    pub(crate) fn builder(&self, interfaces: &[Chosen], timestamps: Timestamps) -> Builder {
        let builder = Capture::builder()
            .source(self.source.into())
            .segment(self.segment)
            .tc_filters(self.tc_filters)
            .mode(self.mode.into())
            .timestamps(self.timestamps.map_or(timestamps, Timestamps::from))
            .promiscuous(!self.no_promiscuous_mode)
            .stacked(self.stacked);
        interfaces.iter().fold(builder, |builder, chosen| chosen.add_to(builder))
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
enum SourceArg {
    #[default]
    Auto,
    Xdp,
    Tc,
    #[value(name = "xdp+tc")]
    XdpTc,
    AfPacket,
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
enum ModeArg {
    #[default]
    Pass,
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
    Kernel,
    Batch,
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
