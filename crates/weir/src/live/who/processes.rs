//! Processes that were told of, each once.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::sync::Arc;

use weir_bpf::who::ProcessReport;
use weir_sys::process::Stat;
use weir_who::{Placed, Process, ProcessId};

use super::groups::Groups;

/// At most so many are known; the first to be known are the first to be forgotten.
const MOST: usize = 65_536;
/// Those that have ended are kept for as many others to end: what they had open is closed later.
const MOST_ENDED: usize = 1024;
/// How one process is known: before and after a change of its name, user or control group.
const MOST_VARIANTS: usize = 4;

/// A table of processes, of a fixed size.
#[derive(Debug)]
pub(super) struct Processes {
    most: usize,
    known: HashMap<ProcessId, Known>,
    order: VecDeque<ProcessId>,
    ended: VecDeque<ProcessId>,
    /// Whether their arguments are wanted.
    arguments: bool,
}

/// What is known of a process, whatever its name, user and group are.
#[derive(Debug, Default)]
struct Known {
    program: Option<String>,
    arguments: Option<Vec<String>>,
    variants: Vec<(ProcessReport, Arc<Process>)>,
}

impl Processes {
    pub(super) fn new(arguments: bool) -> Self {
        Self::with_room_for(MOST, arguments)
    }

    fn with_room_for(most: usize, arguments: bool) -> Self {
        Self { most, known: HashMap::new(), order: VecDeque::new(), ended: VecDeque::new(), arguments }
    }

    /// Returns the process: the same one for the same report.
    pub(super) fn get(&mut self, report: &ProcessReport, groups: &mut Groups) -> Arc<Process> {
        let id = id_of(report);
        if let Some(known) = self.known.get(&id)
            && let Some((_, process)) = known.variants.iter().find(|(variant, _)| variant == report)
        {
            return Arc::clone(process);
        }
        if !self.known.contains_key(&id) {
            let (program, arguments) = looked_up(id, self.arguments);
            self.insert(id, Known { program, arguments, variants: Vec::new() });
        }
        let group = group_of(id, report.cgroup, groups);
        let known = self.known.get_mut(&id).expect("it is there now");
        let process = Arc::new(Process {
            id,
            parent: report.parent,
            user: report.user,
            name: name_of(&report.name),
            program: known.program.clone(),
            arguments: known.arguments.clone(),
            cgroup: group.cgroup,
            container: group.container,
            unit: group.unit,
        });
        if known.variants.len() >= MOST_VARIANTS {
            known.variants.remove(0);
        }
        known.variants.push((*report, Arc::clone(&process)));
        process
    }

    /// Returns the process, which runs another program from now on.
    pub(super) fn executed(
        &mut self,
        report: &ProcessReport,
        program: &[u8],
        groups: &mut Groups,
    ) -> Arc<Process> {
        let id = id_of(report);
        let (at_hand, arguments) = looked_up(id, self.arguments);
        // What was given to the kernel may be relative, or a script.
        let given = (!program.is_empty()).then(|| String::from_utf8_lossy(program).into_owned());
        let known = Known { program: at_hand.or(given), arguments, variants: Vec::new() };
        self.insert(id, known);
        self.get(report, groups)
    }

    /// Notes that a process has ended.
    pub(super) fn ended(&mut self, report: &ProcessReport) {
        let id = id_of(report);
        if !self.known.contains_key(&id) {
            return;
        }
        self.ended.push_back(id);
        if self.ended.len() > MOST_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn insert(&mut self, id: ProcessId, known: Known) {
        if self.known.insert(id, known).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > self.most {
            let Some(oldest) = self.order.pop_front() else { break };
            self.known.remove(&oldest);
        }
    }
}

fn id_of(report: &ProcessReport) -> ProcessId {
    const HUNDREDTH: u64 = 10_000_000;
    let started = match report.started {
        0 => Stat::of(report.number).map_or(0, |stat| stat.started),
        nanoseconds => nanoseconds / HUNDREDTH,
    };
    ProcessId { number: report.number, started }
}

/// Returns the program and the arguments of a process that runs, if this process may see them.
fn looked_up(id: ProcessId, arguments: bool) -> (Option<String>, Option<Vec<String>>) {
    let directory = format!("/proc/{}", id.number);
    let program = fs::read_link(format!("{directory}/exe")).ok();
    let line = arguments.then(|| fs::read(format!("{directory}/cmdline")).ok()).flatten();
    // Neither is another's that has the number now.
    if !runs(id) {
        return (None, None);
    }
    let arguments = line.filter(|line| !line.is_empty()).map(|line| {
        let line = line.strip_suffix(&[0]).unwrap_or(&line);
        line.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    });
    (program.map(|program| program.to_string_lossy().into_owned()), arguments)
}

/// Returns what is known of a process's control group. Where it has none of its own in cgroup2, version 1 may have.
fn group_of(id: ProcessId, number: u64, groups: &mut Groups) -> Placed {
    let group = groups.get(number).cloned().unwrap_or_default();
    if !groups.version_1 || group.cgroup.as_ref().is_some_and(|path| path != "/") {
        return group;
    }
    match fs::read_to_string(format!("/proc/{}/cgroup", id.number)) {
        Ok(lines) if runs(id) => Placed::parse(&lines),
        _ => group,
    }
}

/// Returns whether the process has its number still.
fn runs(id: ProcessId) -> bool {
    Stat::of(id.number).is_ok_and(|stat| stat.started == id.started)
}

/// Reads a name, which ends at a zero.
fn name_of(name: &[u8]) -> String {
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(number: u32, started: u64, name: &[u8]) -> ProcessReport {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name);
        ProcessReport { number, started, parent: 1, user: 0, cgroup: u64::MAX, name: bytes }
    }

    /// A number that no process has.
    const NOBODY: u32 = u32::MAX;

    #[test]
    fn the_same_process_is_the_same_until_it_changes() {
        let (mut processes, mut groups) = (Processes::new(false), Groups::find());
        let first = processes.get(&report(NOBODY, 50_000_000, b"a"), &mut groups);
        assert_eq!((first.id.started, first.name.as_str(), first.program.as_deref()), (5, "a", None));
        assert!(Arc::ptr_eq(&first, &processes.get(&report(NOBODY, 50_000_000, b"a"), &mut groups)));
        let renamed = processes.get(&report(NOBODY, 50_000_000, b"b"), &mut groups);
        assert_eq!((renamed.id, renamed.name.as_str()), (first.id, "b"));
        // Another one with the same number.
        assert_ne!(processes.get(&report(NOBODY, 70_000_000, b"a"), &mut groups).id, first.id);

        let other = processes.executed(&report(NOBODY, 50_000_000, b"a"), b"./a.out", &mut groups);
        assert_eq!(other.program.as_deref(), Some("./a.out"));
        assert!(Arc::ptr_eq(&other, &processes.get(&report(NOBODY, 50_000_000, b"a"), &mut groups)));
    }

    #[test]
    fn the_table_has_a_size() {
        let (mut processes, mut groups) = (Processes::with_room_for(2000, false), Groups::find());
        groups.version_1 = false;
        for number in 0..2100 {
            processes.get(&report(NOBODY - number, 10_000_000, b"a"), &mut groups);
        }
        assert_eq!((processes.known.len(), processes.order.len()), (2000, 2000));
        for name in 0..20 {
            processes.get(&report(NOBODY - 2099, 10_000_000, &[b'a' + name]), &mut groups);
        }
        let id = ProcessId { number: NOBODY - 2099, started: 1 };
        assert_eq!(processes.known[&id].variants.len(), MOST_VARIANTS);
        for number in 0..1500 {
            processes.ended(&report(NOBODY - 500 - number, 10_000_000, b"a"));
        }
        assert_eq!(processes.known.len(), 2000 - (1500 - MOST_ENDED));
    }

    #[test]
    fn the_own_program_is_known_and_its_arguments_if_wanted() {
        let own = std::process::id();
        let since = Stat::of(own).unwrap().started;
        let id = ProcessId { number: own, started: since };
        let (program, arguments) = looked_up(id, true);
        assert_eq!(program.as_deref(), std::env::current_exe().unwrap().to_str());
        assert_eq!(arguments.unwrap(), std::env::args().collect::<Vec<_>>());
        assert_eq!(looked_up(ProcessId { started: since + 1, ..id }, true), (None, None));
        // Where the kernel does not tell when it started, /proc does.
        assert_eq!(id_of(&report(own, 0, b"a")), id);
    }
}
