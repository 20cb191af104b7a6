//! A guard: rules below the network stack, which block packets of an interface or let them pass.
//!
//! One program per direction finds the first rule that a packet meets, in tables, and asks filters for what tables do not say. It
//! counts the packet for that rule. Replacing the rules exchanges the programs of the links; nothing is detached.

mod hook;
mod kept;
mod pins;
mod taken;

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use weir_sys::CallError;

pub use self::kept::KeptRules;
use crate::live::interface::monitored::MonitoredInterface;
use crate::live::request::Wanted;
use crate::live::ruled::InForce;
use crate::live::rules::{
    ExactEntry, ExactError, ExactFlow, ExactRule, LOG_SNAP_LEN, LoggedPacket, Reading, RuleInfo, Rules, exact,
};
use crate::live::settings::SourceChoice;
use crate::{
    Direction, Error, Event, FileInterface, InterfaceWarning, Namespace, Setting, SourceKind, file_interface,
};

/// Practically infinite.
const FOREVER: Timespec = Timespec { tv_sec: i64::MAX, tv_nsec: 0 };

/// What happens to packets when the process ends, for whatever reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnExit {
    /// The rules are off, and every packet passes.
    #[default]
    Open,
    /// The rules stay in force in the kernel until a guard of the same interface takes over, or until [`GuardBuilder::end`].
    Closed,
}

/// A builder for [`Guard`]; see [`Guard::on`].
#[derive(Clone, Debug)]
#[must_use]
pub struct GuardBuilder {
    wanted: Wanted,
    source: SourceChoice,
    direction: Direction,
    dry_run: bool,
    on_exit: OnExit,
    on_trial: bool,
    log: Option<u32>,
    tc_filters: bool,
    exact: Option<u32>,
    rules: Rules,
}

/// Lets packets of an interface pass or blocks them, as rules say, before the host's network stack gets them, and before they
/// leave.
///
/// ```no_run
/// # fn main() -> Result<(), weir::Error> {
/// # use weir::guard::{Fate, Rules};
/// # use weir::{Filter, Guard};
/// let rules = Rules::new()
///     .rule("ours", Filter::new("src net 192.0.2.0/24"), Fate::Pass)
///     .rule("telnet", Filter::new("tcp dst port 23"), Fate::Block);
/// let mut guard = Guard::on("eth0").rules(rules).start()?;
/// std::thread::sleep(std::time::Duration::from_secs(60));
/// for rule in guard.read()?.rules {
///     println!("{}: {} packets", rule.name, rule.count.packets);
/// }
/// guard.stop()
/// # }
/// ```
///
/// The rules are off when this is dropped or the process ends, however that happens, unless they are to [stay](OnExit::Closed). Other
/// programs on the interface stay.
#[derive(Debug)]
pub struct Guard {
    monitored: MonitoredInterface,
    info: GuardInfo,
    in_force: InForce,
    events: Vec<Event>,
}

/// How an interface is guarded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GuardInfo {
    /// The interface; `NAMESPACE/NAME` if a namespace was named.
    pub name: String,
    /// What decides about received packets: [`Xdp`](SourceKind::Xdp) or [`Tc`](SourceKind::Tc); `None`: nothing.
    pub received: Option<SourceKind>,
    /// Whether rules decide about sent packets, too, which is by tc.
    pub sent: bool,
    /// How the programs are attached, in words.
    pub detail: String,
    /// Why received packets are decided about there.
    pub why: String,
    /// What the rules do not see, if anything.
    pub warnings: Vec<InterfaceWarning>,
    /// Every packet passes; rules only count.
    pub dry_run: bool,
    /// Rules that an earlier guard had left in force ([`OnExit::Closed`]) have been replaced, and no packet met none.
    pub took_over: bool,
}

impl GuardBuilder {
    /// The most [exact rules](Self::exact) that are possible.
    pub const MOST_EXACT: u32 = exact::MOST;

    /// Sets the network namespace of the interface; `None`: that of the calling thread.
    pub fn namespace(mut self, namespace: Option<&Namespace>) -> Self {
        self.wanted.namespace = namespace.cloned();
        self
    }

    /// Sets where received packets are decided about: [`Xdp`](SourceChoice::Xdp), before the stack spends memory on them, or
    /// [`Tc`](SourceChoice::Tc), between driver and stack. [`Auto`](SourceChoice::Auto), the default, takes xdp in the driver,
    /// unless that cannot run a program, runs another one, or strips VLAN tags. Sent packets are decided about by tc.
    pub fn source(mut self, source: SourceChoice) -> Self {
        self.source = source;
        self
    }

    /// Sets which packets the rules are for: received ones, sent ones, or both, which is the default.
    pub fn direction(mut self, direction: Direction) -> Self {
        self.direction = direction;
        self
    }

    /// Lets every packet pass, whatever the rules say; they only count. The default is no.
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Sets what happens to packets when the process ends. Rules that an earlier guard has left in force are taken over, whatever is set. In a
    /// [dry run](Self::dry_run) nothing stays, and nothing is taken over.
    pub fn on_exit(mut self, on_exit: OnExit) -> Self {
        self.on_exit = on_exit;
        self
    }

    /// Puts the rules on trial, until they are [accepted](Guard::accept). If the guard is stopped or dropped before, they are off,
    /// whatever is to happen [on exit](Self::on_exit), and rules that an earlier guard has left are in force again. The default is no.
    pub fn on_trial(mut self, on_trial: bool) -> Self {
        self.on_trial = on_trial;
        self
    }

    /// Takes off the rules of this interface that a guard has left in force ([`OnExit::Closed`]).
    ///
    /// # Errors
    ///
    /// There are none, their guard is running, or privileges are missing.
    pub fn end(self) -> Result<(), Error> {
        KeptRules::of(&self.wanted)?.end()
    }

    /// Logs packets, into so many bytes of memory, rounded up to a power of two, until [`Guard::logged`] takes them: all that do not go on, and
    /// those of rules that [log](crate::guard::Action::log). A packet takes 128, 1600 or 9728 bytes. What finds no room is counted
    /// ([`Reading::log_lost`]). The default is `None`: nothing is logged.
    pub fn log(mut self, bytes: Option<u32>) -> Self {
        self.log = bytes;
        self
    }

    /// Sets how many exact rules there can be at a time, those that rules learn and those that are [added](Guard::add_exact)
    /// together, 16,777,216 at most; each takes about 170 bytes. The default is 65,536 if rules learn; otherwise there is no table of them, and none can be
    /// added. A table costs a look-up for each packet.
    pub fn exact(mut self, most: u32) -> Self {
        self.exact = Some(most.max(1));
        self
    }

    /// Sets the rules. The default is none.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Puts the rules in force.
    ///
    /// # Errors
    ///
    /// The interface is unknown, a filter is invalid, another XDP program is attached (with xdp), or privileges or kernel support
    /// are missing. Each error says what to do. Nothing stays attached.
    pub fn start(self) -> Result<Guard, Error> {
        self.check()?;
        let monitored = MonitoredInterface::find(&self.wanted, 0)?;
        let (hooked, how) = hook::attach(&monitored, &self)?;
        let info = GuardInfo {
            name: monitored.name().to_owned(),
            received: how.received,
            sent: how.sent,
            detail: how.detail,
            why: how.why,
            warnings: how.warnings,
            dry_run: self.dry_run,
            took_over: how.took_over,
        };
        let events = monitored.first_event().into_iter().collect();
        Ok(Guard { monitored, info, in_force: InForce::new(hooked), events })
    }

    /// Checks what needs no look at the machine.
    fn check(&self) -> Result<(), Error> {
        if self.wanted.is_any() {
            let why = "cannot guard `any`: a program attaches to one interface; try the name of an interface";
            return Err(Error::setting(Setting::Interface, why));
        }
        if !matches!(self.source, SourceChoice::Auto | SourceChoice::Tc | SourceChoice::Xdp) {
            let source = self.source.as_str();
            let why = format!("cannot guard with the {source} source: it only copies packets; try tc or xdp");
            return Err(Error::setting(Setting::Source(self.source), why));
        }
        if self.source == SourceChoice::Xdp && self.direction == Direction::Out {
            let why =
                "cannot guard sent packets with the xdp source, which does not see them; try the tc source";
            return Err(Error::conflict(
                Setting::Source(self.source),
                Setting::Direction(self.direction),
                why,
            ));
        }
        if let Some(asked) = self.exact.filter(|asked| *asked > exact::MOST) {
            let most = exact::MOST;
            let why =
                format!("cannot have room for {asked} exact rules: try {most}, the most that are possible");
            return Err(Error::setting(Setting::Rules, why));
        }
        self.rules.check()
    }
}

/// Sets whether tc attaches as `clsact` filters even if the kernel has tcx, to test what older kernels use.
pub fn guard_by_tc_filters(mut builder: GuardBuilder, filters: bool) -> GuardBuilder {
    builder.tc_filters = filters;
    builder
}

impl Guard {
    /// Prepares to guard an interface, by default in the network namespace of the thread that calls [`GuardBuilder::start`].
    pub fn on(interface: impl Into<String>) -> GuardBuilder {
        GuardBuilder {
            wanted: Wanted { namespace: None, name: interface.into(), queues: None },
            source: SourceChoice::Auto,
            direction: Direction::Both,
            dry_run: false,
            on_exit: OnExit::default(),
            on_trial: false,
            log: None,
            tc_filters: false,
            exact: None,
            rules: Rules::new(),
        }
    }

    /// Returns how the interface is guarded.
    pub fn info(&self) -> &GuardInfo {
        &self.info
    }

    /// Returns what the rules have counted so far. After [`stop`](Self::stop) the numbers are final and exact.
    ///
    /// # Errors
    ///
    /// The kernel could not be queried.
    pub fn read(&mut self) -> Result<Reading, Error> {
        self.in_force.read()
    }

    /// Replaces all rules. A packet meets either all old rules or all new ones. Rules with the name and the action
    /// of an old one go on counting from its numbers, also with another filter; with another action they count anew. What was learned is forgotten. Exact rules that were added stay.
    ///
    /// # Errors
    ///
    /// A filter is invalid, the kernel refuses the programs, or it has no tcx (before Linux 6.6). The old rules stay in force.
    pub fn replace(&mut self, rules: &Rules) -> Result<(), Error> {
        self.in_force.replace(&self.info.name, rules)
    }

    /// Adds an exact rule, or replaces the one for the same packets, learned or added. It is asked before all rules, for packets of
    /// both directions of the interface.
    ///
    /// # Errors
    ///
    /// There is no table, or it is full; nothing is removed for a new rule.
    pub fn add_exact(&mut self, rule: &ExactRule) -> Result<(), ExactError> {
        self.in_force.add(rule)
    }

    /// Removes an exact rule, learned or added. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// There is no table, or the kernel could not be asked.
    pub fn remove_exact(&mut self, flow: &ExactFlow) -> Result<bool, ExactError> {
        self.in_force.remove(flow)
    }

    /// Removes all exact rules, learned and added. Returns how many were in force.
    ///
    /// # Errors
    ///
    /// The kernel could not be asked.
    pub fn flush_exact(&mut self) -> Result<usize, ExactError> {
        self.in_force.flush()
    }

    /// Returns the exact rules in force, learned and added, in the order of their flows.
    ///
    /// # Errors
    ///
    /// The kernel could not be asked.
    pub fn exact_rules(&mut self) -> Result<Vec<ExactEntry>, ExactError> {
        self.in_force.exact()
    }

    /// Returns the rules in force.
    pub fn rules(&self) -> &[RuleInfo] {
        &self.in_force.rules
    }

    /// Returns packets that were [logged](GuardBuilder::log) and not taken yet, in order: of rules in force no more than `most`, of those
    /// that were replaced or are off, all. Does not wait; [`wait`](Self::wait) does.
    ///
    /// # Errors
    ///
    /// The kernel could not be queried.
    pub fn logged(&mut self, most: usize) -> Result<Vec<LoggedPacket>, Error> {
        Ok(self.in_force.logged(most)?)
    }

    /// Describes the interface for a file of [logged](Self::logged) packets.
    pub fn file_interface(&self) -> FileInterface {
        const ETHERNET: u16 = 1;
        let device = &self.monitored.device;
        FileInterface {
            snap_len: LOG_SNAP_LEN,
            name: Some(self.info.name.clone()),
            mac: device.link.address.as_slice().try_into().ok(),
            speed_bits: device.speed_bits,
            os: Some(file_interface::os()),
            ..FileInterface::new(ETHERNET)
        }
    }

    /// Waits up to `wait` for changes of the interface. Returns early on a signal, and when packets are logged. If rules learn, or have limits, call it about once a
    /// second: it makes room for what they remember.
    ///
    /// # Errors
    ///
    /// [`Error::InterfaceGone`], after that event was returned. What was counted can still be read.
    pub fn wait(&mut self, wait: Duration) -> Result<Vec<Event>, Error> {
        self.in_force.sweep()?;
        if self.events.is_empty() {
            if self.monitored.is_gone() {
                return Err(Error::InterfaceGone { name: self.info.name.clone() });
            }
            let wait = Timespec::try_from(wait).unwrap_or(FOREVER);
            let wait = if self.in_force.has_logged() { Timespec::default() } else { wait };
            let log = self.in_force.log_fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            let mut fds: Vec<_> = self.monitored.fd().into_iter().chain(log).collect();
            match poll(&mut fds, Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(CallError::new("wait for interface events", error).into()),
            }
            self.events = self.monitored.listen()?;
        }
        Ok(std::mem::take(&mut self.events))
    }

    /// Returns whether the interface is gone, and the rules with it.
    pub fn is_gone(&self) -> bool {
        self.monitored.is_gone()
    }

    /// Accepts rules that are [on trial](GuardBuilder::on_trial). Otherwise it does nothing.
    ///
    /// # Errors
    ///
    /// They cannot be pinned, to [stay](OnExit::Closed); they are in force, and still on trial.
    pub fn accept(&mut self) -> Result<(), Error> {
        self.in_force.accept()
    }

    /// Returns whether the guard was stopped, and its rules are still in force ([`OnExit::Closed`]).
    pub fn rules_stay(&self) -> bool {
        self.in_force.stay
    }

    /// Takes the rules off: every packet passes. When this returns, the numbers are final. Rules that are to [stay](OnExit::Closed) stay in
    /// force, and numbers are those of now. Further calls do nothing.
    ///
    /// # Errors
    ///
    /// A program cannot be detached.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.in_force.stop(self.monitored.is_gone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Filter;
    use crate::live::rules::Fate;

    #[test]
    fn what_cannot_be_guarded_is_told_before_anything_is_attached() {
        let udp = || Filter::new("udp");
        let twice = Rules::new().rule("a", udp(), Fate::Pass).rule("a", udp(), Fate::Block);
        let table = [
            (Guard::on("any"), "cannot guard `any`: "),
            (Guard::on("lo").source(SourceChoice::AfPacket), "cannot guard with the af_packet source: "),
            (
                Guard::on("lo").source(SourceChoice::Xdp).direction(Direction::Out),
                "cannot guard sent packets with the xdp source",
            ),
            (Guard::on("lo").exact(u32::MAX), "4294967295 exact rules: try 16777216, the most"),
            (Guard::on("lo").rules(twice), "two rules called `a`: try "),
            (Guard::on("no-such"), "no interface named `no-such`"),
        ];
        for (builder, said) in table {
            let error = builder.start().expect_err("it cannot be").to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
