//! `weir-bench filter`: filters against libpcap's: length, speed, and what compiling them takes; what one adds to XDP, and what it
//! takes to exchange one.

mod compile;
mod ctl;
mod exchange;
mod length;
mod speed;
mod xdp;

use weir_filter::{Dialect, Error, Filter};
use weir_judge::Libpcap;
use weir_judge::compiled::options;

pub(super) use self::compile::OnceArgs;
pub(super) use self::compile::run_once;
use self::exchange::SOURCES;
use self::xdp::Xdp;
use crate::experiment::{
    About, Experiment, Found, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn,
};
use crate::failure::Failure;
use crate::style;

pub(crate) const EXAMPLES: &str = "\
Examples:
  weir-bench filter
        Run five rounds (two minutes, mostly for libpcap to compile 1000 hosts once).
  weir-bench filter --quick
        Check that the benchmark works; the times mean little.

Both compilers get the same expressions, and both programs the same packets, in turn. Times apply \
to this build; a debug build is many times slower. Filtering in user space and in XDP is measured in \
processor time. XDP and captures require root.";

/// libpcap, and the programs in the kernel.
struct Filters {
    libpcap: Libpcap,
    /// None without the privilege to load programs.
    xdp: Option<Xdp>,
    quick: bool,
}

/// Loads the programs.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    settings.without_cards("filter")?;
    let xdp = Xdp::load().inspect_err(|failure| {
        style::say(format_args!("XDP: {}", style::stderr().yellow(failure.message())));
    });
    Ok(Box::new(Filters {
        libpcap: Libpcap::open().map_err(Failure::new)?,
        xdp: xdp.ok(),
        quick: settings.quick,
    }))
}

/// Turns that are no expression.
const CORPUS: &str = "classic BPF over the corpus";
const XDP: &str = "XDP";

impl Experiment for Filters {
    fn about(&self) -> About {
        let names =
            speed::EXPRESSIONS.into_iter().chain([CORPUS]).chain(compile::TURNS.map(|(name, ..)| name));
        let names = names.chain(xdp::SERIES).chain(SOURCES.map(|(name, _)| name));
        About {
            name: "filter".to_owned(),
            title: "Filters".to_owned(),
            method: format!(
                "Both compilers get the same expressions: how long their programs are over a corpus, how long packets take to be asked \
                 in user space, and what compiling many hosts takes. What a place for a filter and a filter in it add to an XDP \
                 program, and how long it takes to exchange the filter of a capture at full rate, of which no packet may be lost, \
                 doubled or late. {}.",
                self.libpcap.version()
            ),
            measures: vec![
                Measure::lower("ours", "native code, of a packet", "ns"),
                Measure::lower("theirs", "pcap_offline_filter, of a packet", "ns"),
                Measure::lower("instructions", "our instructions", ""),
                Measure::lower("libpcap", "libpcap's instructions, optimised", ""),
                Measure::lower("longer", "expressions of which ours is longer by over a tenth", ""),
                Measure::lower("compile", "time to compile", "ms"),
                Measure::lower("memory", "memory to compile", "MiB"),
                Measure::lower("added", "processor time added to a packet", "ns"),
                Measure::lower("first_packet", "exchange: until a packet has met the filter", "us"),
                Measure::lower("loading", "exchange: compiled, loaded and put in place", "us"),
                Measure::lower("loading_cpu", "the same in processor time", "us"),
                Measure::lower("old_drained", "exchange: until no packet is in the program before", "us"),
                Measure::lower("command", "all of `weir ctl filter`", "us"),
                Measure::fact("wrong", "packets that were lost, doubled or late in an exchange", "packets"),
                Measure::fact("exchanges", "exchanges", "exchanges"),
                Measure::fact("lost", "packets that found no room in the pool", "packets"),
                Measure::fact("matched", "packets that match", "packets"),
            ],
            series: names.map(|name| Series::new(name, name, Role::Ours)).collect(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let names = [CORPUS].into_iter().chain(speed::EXPRESSIONS);
        let names = names.chain(compile::TURNS.map(|(name, ..)| name));
        let xdp = [XDP].into_iter().chain(SOURCES.map(|(name, _)| name)).filter(|_| self.xdp.is_some());
        names.chain(xdp).map(|name| Turn::of(name, None)).collect()
    }

    fn take(&mut self, turn: &Turn, round: u32) -> Result<Taken, Failure> {
        let (name, quick) = (turn.name.as_str(), self.quick);
        if let Some(expression) = speed::EXPRESSIONS.into_iter().find(|expression| *expression == name) {
            return speed::measure(&self.libpcap, expression, quick, turn);
        }
        if let Some(one) = compile::TURNS.iter().find(|(series, ..)| *series == name) {
            // libpcap takes more than a minute.
            let is_long = name == compile::LIBPCAP && (quick || round != 1);
            return if is_long { Ok(Taken::default()) } else { compile::measure(one, turn) };
        }
        if let Some((_, source)) = SOURCES.into_iter().find(|(series, _)| *series == name) {
            return exchange::measure(source, quick, turn);
        }
        match &self.xdp {
            Some(xdp) if name == XDP => {
                let added = xdp.measure(quick)?;
                let found = xdp::SERIES.into_iter().zip(added);
                let found = found.map(|(series, added)| Found::new(series, "added", None, added)).collect();
                Ok(Taken { found, ..Taken::default() })
            }
            _ => Ok(length::measure(&self.libpcap, turn, round)),
        }
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let parts = [length::bars, speed::bars, compile::bars, xdp::bars, exchange::bars];
        parts.map(|bars: fn(&Outcome) -> Vec<Judged>| bars(outcome)).concat()
    }
}

/// As both compilers do it: for files.
fn compile(text: &str, dialect: Dialect, link_type: u16) -> Result<Filter, Error> {
    weir_filter::compile(text, &options(dialect, link_type))
}
