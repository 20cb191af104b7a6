//! The machine that numbers belong to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::SystemTime;

use rustix::system::uname;
use serde::Serialize;

use crate::interfaces::Interface;
use crate::versions;

/// What the kernel knows of processors.
const PROCESSORS: &str = "/sys/devices/system/cpu";
/// A hypervisor that does not say its name.
const UNKNOWN: &str = "unknown";

/// What numbers depend on.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    cpu: String,
    processors: usize,
    /// KVM and the like; empty on bare metal.
    hypervisor: String,
    memory_bytes: u64,
    kernel: String,
    clocksource: String,
    /// Processor vulnerabilities that the kernel mitigates or leaves open; those that do not concern this processor are left out.
    mitigations: BTreeMap<String, String>,
    /// How the kernel chooses the processors' frequency; empty where it does not.
    governor: String,
    /// Whether processors may be faster than their nominal frequency; empty where the kernel does not say.
    turbo: String,
    /// Versions of other programs that are installed.
    peers: BTreeMap<&'static str, String>,
    /// Where packets go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interfaces: Vec<Interface>,
    /// Of the folder that files are written to.
    file_system: &'static str,
    weir: &'static str,
    /// Of the sources' folder, as it is now; empty where that is gone.
    commit: String,
    /// Seconds since the Unix epoch.
    time: u64,
    /// Processes that wanted to run in the minute before.
    load: String,
}

impl Machine {
    /// Looks at it. What cannot be found out stays empty.
    pub(super) fn describe(dir: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let flags = field(&cpuinfo, "flags").unwrap_or_default();
        let total = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let total = total.trim_end_matches(" kB").parse::<u64>().unwrap_or(0) << 10;
        let about = uname();
        let words = [about.release(), about.version(), about.machine()].map(|word| word.to_string_lossy());
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            cpu: field(&cpuinfo, "model name").unwrap_or_default(),
            processors: thread::available_parallelism().map_or(0, |processors| processors.get()),
            hypervisor: if flags.split(' ').any(|flag| flag == "hypervisor") {
                hypervisor()
            } else {
                String::new()
            },
            memory_bytes: total,
            kernel: words.join(" "),
            clocksource: read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .trim()
                .to_owned(),
            mitigations: mitigations(&Path::new(PROCESSORS).join("vulnerabilities")),
            governor: governor(Path::new(PROCESSORS)),
            turbo: turbo(Path::new(PROCESSORS)),
            peers: versions::of_peers(),
            interfaces: Vec::new(),
            file_system: file_system(dir),
            weir: env!("CARGO_PKG_VERSION"),
            commit: commit(),
            time: time.map_or(0, |time| time.as_secs()),
            load: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}

impl Machine {
    /// The same with these interfaces.
    pub(super) fn with(self, interfaces: Vec<Interface>) -> Self {
        Self { interfaces, ..self }
    }

    /// Returns the day, in UTC: `2026-11-28`.
    pub(super) fn date(&self) -> String {
        let seconds = i64::try_from(self.time).unwrap_or(0);
        let day = |time: jiff::Timestamp| time.strftime("%Y-%m-%d").to_string();
        jiff::Timestamp::from_second(seconds).map(day).unwrap_or_default()
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, processors, hypervisor, kernel, clocksource, weir, commit, load, .. } = self;
        let release = kernel.split(' ').next().unwrap_or_default();
        let virtual_on = match hypervisor.as_str() {
            "" => String::new(),
            UNKNOWN => ", virtual".to_owned(),
            name => format!(", virtual ({name})"),
        };
        let commit = if commit.is_empty() { String::new() } else { format!(" ({commit})") };
        write!(
            f,
            "{processors} x {cpu}{virtual_on}, Linux {release}, clock {clocksource}, load {load}, weir {weir}{commit}"
        )
    }
}

fn field(text: &str, name: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

fn hypervisor() -> String {
    let vendor = fs::read_to_string("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let vendor = vendor.trim();
    if vendor.is_empty() { UNKNOWN.to_owned() } else { vendor.to_owned() }
}

/// All but those that the processor is not affected by: name and the kernel's words.
fn mitigations(dir: &Path) -> BTreeMap<String, String> {
    let named = |path: PathBuf| {
        let said = fs::read_to_string(&path).ok()?.trim().to_owned();
        Some((path.file_name()?.to_string_lossy().into_owned(), said))
    };
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter_map(|file| named(file.path())).filter(|(_, said)| said != "Not affected").collect()
}

/// Different ones joined by commas.
fn governor(processors: &Path) -> String {
    let of = |path: PathBuf| fs::read_to_string(path.join("cpufreq/scaling_governor")).ok();
    let each = fs::read_dir(processors).into_iter().flatten().flatten();
    let all: BTreeSet<String> =
        each.filter_map(|entry| of(entry.path())).map(|text| text.trim().to_owned()).collect();
    Vec::from_iter(all).join(", ")
}

fn turbo(processors: &Path) -> String {
    let says = |file: &str| fs::read_to_string(processors.join(file)).ok().map(|text| text.trim() != "0");
    let on = says("intel_pstate/no_turbo").map(|off| !off).or_else(|| says("cpufreq/boost"));
    on.map_or("", |on| if on { "on" } else { "off" }).to_owned()
}

fn file_system(dir: &Path) -> &'static str {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    match rustix::fs::statfs(dir) {
        Ok(about) if about.f_type == TMPFS_MAGIC => "tmpfs",
        Ok(_) => "not tmpfs",
        Err(_) => "unknown",
    }
}

fn commit() -> String {
    // Of sources that belong to somebody else, as under sudo, git would not speak otherwise.
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*", "-C", env!("CARGO_MANIFEST_DIR")]);
    let output = git.args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]).output();
    let said = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    said.map(|text| String::from_utf8_lossy(&text).trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nMemTotal:       24683524 kB\n";
        assert_eq!(field(text, "model name").as_deref(), Some("AMD EPYC"));
        assert_eq!(field(text, "model").as_deref(), Some("17"));
        assert_eq!(field(text, "MemTotal").as_deref(), Some("24683524 kB"));
        assert_eq!(field(text, "flags"), None);
    }

    #[test]
    fn what_the_kernel_says_of_processors_is_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let place = dir.path();
        assert_eq!(
            (mitigations(place), governor(place), turbo(place)),
            (BTreeMap::new(), String::new(), String::new())
        );
        for (file, text) in [
            ("vulnerabilities/meltdown", "Not affected\n"),
            ("vulnerabilities/spectre_v2", "Mitigation: Retpolines\n"),
            ("cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("cpu1/cpufreq/scaling_governor", "performance\n"),
            ("cpu2/cpufreq/scaling_governor", "performance\n"),
            ("cpufreq/boost", "1\n"),
        ] {
            let path = place.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let known = [("spectre_v2".to_owned(), "Mitigation: Retpolines".to_owned())];
        assert_eq!(mitigations(&place.join("vulnerabilities")), BTreeMap::from(known));
        assert_eq!((governor(place).as_str(), turbo(place).as_str()), ("performance, powersave", "on"));
        fs::create_dir(place.join("intel_pstate")).expect("a folder");
        fs::write(place.join("intel_pstate/no_turbo"), "1\n").expect("a file");
        assert_eq!(turbo(place), "off");
    }

    #[test]
    fn this_machine_can_be_described() {
        let machine = Machine::describe(Path::new("/"));
        assert!(machine.processors > 0 && machine.memory_bytes > 1 << 20, "{machine:?}");
        assert!(machine.to_string().contains("Linux"), "{machine}");
    }
}
