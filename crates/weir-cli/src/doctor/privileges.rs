//! Compares the privileges of this process with those that the sources need.

use rustix::fs::getxattr;
use weir_sys::privilege::{self, Capabilities};

use super::check::Check;
use crate::program;

/// Returns the command that gives the program the privileges for all sources.
pub(super) fn setcap() -> String {
    format!("run as root, or: setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep {}", program::path())
}

/// Loading, attaching and promiscuous mode.
const PROGRAMS: Capabilities = Capabilities::BPF
    .union(Capabilities::PERFMON)
    .union(Capabilities::NET_ADMIN)
    .union(Capabilities::NET_RAW);

pub(super) fn checks() -> Vec<Check> {
    let effective = match privilege::effective() {
        // CAP_SYS_ADMIN includes the two newer capabilities, which were split off from it.
        Ok(effective) if effective.contains(Capabilities::SYS_ADMIN) => {
            effective | Capabilities::BPF | Capabilities::PERFMON
        }
        Ok(effective) => effective,
        Err(error) => return vec![Check::unknown("capabilities", error.to_string())],
    };
    vec![
        user(),
        needs("for xdp, tc", PROGRAMS, effective),
        needs("for af_packet", Capabilities::NET_RAW, effective),
        needs_lab(effective),
        of_the_binary(effective),
    ]
}

fn user() -> Check {
    let user = rustix::process::geteuid();
    Check::ok("user", if user.is_root() { "root".to_owned() } else { format!("user id {}", user.as_raw()) })
}

fn needs(name: &'static str, needed: Capabilities, effective: Capabilities) -> Check {
    let lacking = needed - effective;
    if lacking.is_empty() {
        return Check::ok(name, listed(needed));
    }
    Check::missing(name, format!("without {}", listed(lacking))).remedy(setcap())
}

fn needs_lab(effective: Capabilities) -> Check {
    const NAME: &str = "for --netns, demo";
    if effective.contains(Capabilities::SYS_ADMIN) {
        return Check::ok(NAME, "cap_sys_admin");
    }
    Check::note(NAME, "without cap_sys_admin")
        .why("weir cannot enter other network namespaces or create one for tests")
        .remedy("run as root")
}

/// Checks the capabilities that the program file grants.
fn of_the_binary(effective: Capabilities) -> Check {
    const NAME: &str = "file capabilities";
    let Ok(path) = std::env::current_exe() else {
        return Check::unknown(NAME, "its path is unknown");
    };
    let mut value = [0; 64];
    let granted = getxattr(&path, "security.capability", &mut value)
        .ok()
        .and_then(|length| permitted(value.get(..length)?));
    let Some(granted) = granted else {
        return Check::ok(NAME, format!("{} grants none", path.display()));
    };
    let found = format!("{} grants {}", path.display(), listed(granted));
    if !effective.contains(granted) {
        let held_back = rustix::thread::no_new_privs().unwrap_or(false);
        return Check::weak(NAME, format!("{found}, but this process lacks them")).why(if held_back {
            "no_new_privs is set, by a container, systemd or sudo"
        } else {
            "its bounding set or a nosuid mount blocks them"
        });
    }
    Check::ok(NAME, found)
}

/// Returns the permitted set of `struct vfs_cap_data` (linux/capability.h), little-endian: a word with the revision,
/// then permitted and inheritable sets for each 32 capabilities.
fn permitted(value: &[u8]) -> Option<Capabilities> {
    let word = |at: usize| Some(u64::from(u32::from_le_bytes(value.get(at..at + 4)?.try_into().ok()?)));
    Some(Capabilities::from_bits_retain(word(4)? | word(12)? << 32))
}

/// Formats capabilities by their names for `setcap`.
fn listed(capabilities: Capabilities) -> String {
    let names = capabilities.iter_names().map(|(name, _)| format!("cap_{}", name.to_ascii_lowercase()));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_of_a_file_are_read() {
        // cap_net_raw (13) and cap_bpf (39), effective, revision 2.
        let value = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0];
        let found = permitted(&value).expect("capabilities");
        assert_eq!(found, Capabilities::NET_RAW | Capabilities::BPF);
        assert_eq!(listed(found), "cap_net_raw, cap_bpf");
        assert_eq!(permitted(&value[..10]), None);
    }
}
