//! What the path of a control group says: the container and the unit of systemd in it.

use crate::Container;

/// How engines name the group of a container, before its id and behind: `docker-ID.scope`.
const SCOPES: &[(&str, &str)] = &[
    ("docker-", "docker"),
    ("cri-containerd-", "containerd"),
    ("nerdctl-", "containerd"),
    ("crio-", "cri-o"),
    ("libpod-", "podman"),
    ("crun-", "crun"),
    ("machine-", "systemd"),
];

/// Groups whose children are containers, named by their ids.
const PARENTS: &[(&str, &str)] =
    &[("docker", "docker"), ("libpod_parent", "podman"), ("lxc", "lxc"), ("garden", "garden")];

/// Engines whose containers are called by names, not by ids.
const BY_NAME: &[&str] = &["crun", "systemd", "lxc", "garden"];

/// Engines' own processes beside a container, which are not in it.
const MONITORS: &[&str] = &["crio-conmon-", "libpod-conmon-"];

/// Length of the ids that engines make: SHA-256 in hexadecimal.
const ID: usize = 64;

/// Where a process is among control groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// See [`Process::cgroup`](crate::Process::cgroup).
    pub cgroup: Option<String>,
    /// The container, without the name that people gave it.
    pub container: Option<Container>,
    /// The unit of systemd.
    pub unit: Option<String>,
}

impl Placed {
    /// Returns where processes in the group with this path are.
    pub fn at(path: &str) -> Self {
        Self {
            cgroup: Some(path.to_owned()),
            container: container(path),
            unit: unit(path).map(str::to_owned),
        }
    }

    /// Reads where a process is from `/proc/PID/cgroup` (cgroups(7)): lines `NUMBER:CONTROLLERS:PATH`, the one of cgroup2 `0::PATH`. Engines
    /// that use version 1 leave cgroup2's group as it was, so a group of a container counts most, then cgroup2's.
    pub fn parse(lines: &str) -> Self {
        let path = |line: &'_ str| line.splitn(3, ':').nth(2).map(str::to_owned);
        let (mut unified, mut others) = (None, Vec::new());
        for line in lines.lines() {
            match path(line) {
                Some(path) if line.starts_with("0::") => unified = Some(path),
                Some(path) => others.push(path),
                None => {}
            }
        }
        let all = || unified.iter().chain(&others);
        let in_container = all().find(|path| container(path).is_some());
        let own = || unified.as_ref().filter(|path| *path != "/");
        let longest = || others.iter().max_by_key(|path| path.len());
        let Some(path) = in_container.or_else(own).or_else(longest).or(unified.as_ref()) else {
            return Self::default();
        };
        let unit = || all().find_map(|path| unit(path)).map(str::to_owned);
        let placed = Self::at(path);
        Self { unit: placed.unit.clone().or_else(unit), ..placed }
    }
}

/// Returns the container that a control group's path belongs to, if it is named as an engine names it: Docker, containerd, CRI-O,
/// Podman, crun, LXC and systemd-nspawn, by systemd's groups or their own. The innermost wins, as a container in a container has its
/// own processes.
fn container(path: &str) -> Option<Container> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    (0..parts.len()).rev().find_map(|at| {
        let parent = at.checked_sub(1).map(|before| parts[before]);
        in_scope(parts[at]).or_else(|| in_parent(parent?, parts[at]))
    })
}

/// Returns the unit of systemd that a control group's path belongs to (`nginx.service`), the innermost.
fn unit(path: &str) -> Option<&str> {
    let mut parts = path.rsplit('/');
    parts.find(|part| {
        [".service", ".scope"].iter().any(|kind| part.len() > kind.len() && part.ends_with(kind))
    })
}

/// A group that an engine has made with the help of systemd, or named the same way by itself.
fn in_scope(part: &str) -> Option<Container> {
    if MONITORS.iter().any(|monitor| part.starts_with(monitor)) {
        return None;
    }
    if let Some(name) = part.strip_prefix("systemd-nspawn@").and_then(|rest| rest.strip_suffix(".service")) {
        return is_name(name).then(|| named(name, "systemd"));
    }
    if let Some(name) = part.strip_prefix("lxc.payload.") {
        return is_name(name).then(|| named(name, "lxc"));
    }
    let (prefix, engine) = SCOPES.iter().find(|(prefix, _)| part.starts_with(prefix))?;
    let rest = &part[prefix.len()..];
    match rest.strip_suffix(".scope") {
        // Whoever may make groups may call them anything.
        Some(id) if is_id(id) || (BY_NAME.contains(engine) && is_name(id)) => Some(named(id, engine)),
        // Without systemd, only what engines have made looks like this.
        _ => is_id(rest).then(|| named(rest, engine)),
    }
}

/// A group without systemd: `/docker/ID`, `/kubepods/burstable/podUID/ID`.
fn in_parent(parent: &str, part: &str) -> Option<Container> {
    if let Some((_, engine)) = PARENTS.iter().find(|(name, _)| *name == parent) {
        let is_known = is_id(part) || (BY_NAME.contains(engine) && is_name(part));
        return is_known.then(|| named(part, engine));
    }
    // Kubernetes does not tell the engine, nor does Amazon's ECS.
    is_id(part).then(|| named(part, ""))
}

fn named(id: &str, engine: &str) -> Container {
    Container { id: id.to_owned(), name: None, engine: engine.to_owned() }
}

/// Whether it is a name, and no way to another directory. A part of a path has no slash.
fn is_name(text: &str) -> bool {
    !matches!(text, "" | "." | "..")
}

fn is_id(text: &str) -> bool {
    text.len() == ID && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[track_caller]
    fn check(path: &str, expected: Option<(&str, &str)>) {
        let path = path.replace("HEX", HEX);
        let found = container(&path);
        let found = found.as_ref().map(|found| (found.id.as_str(), found.engine.as_str()));
        let expected = expected.map(|(id, engine)| (if id == "HEX" { HEX } else { id }, engine));
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn containers_are_told_by_the_names_of_their_groups() {
        check("/system.slice/docker-HEX.scope", Some(("HEX", "docker")));
        check("/system.slice/docker-HEX.scope/init.scope", Some(("HEX", "docker")));
        check("/docker/HEX", Some(("HEX", "docker")));
        check("/docker/HEX/system.slice/cron.service", Some(("HEX", "docker")));
        let pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice";
        check(&format!("{pod}/cri-containerd-HEX.scope"), Some(("HEX", "containerd")));
        check(&format!("{pod}/crio-HEX.scope"), Some(("HEX", "cri-o")));
        check("/kubepods/besteffort/pod12-34/HEX", Some(("HEX", "")));
        check("/machine.slice/libpod-HEX.scope/container", Some(("HEX", "podman")));
        check("/libpod_parent/libpod-HEX", Some(("HEX", "podman")));
        check(
            "/user.slice/user-1000.slice/user@1000.service/user.slice/crun-web.scope",
            Some(("web", "crun")),
        );
        check("/lxc.payload.mail/system.slice/postfix.service", Some(("mail", "lxc")));
        check("/lxc/mail", Some(("mail", "lxc")));
        check("/machine.slice/systemd-nspawn@web.service/payload", Some(("web", "systemd")));
        check("/machine.slice/machine-web.scope", Some(("web", "systemd")));
        check("/ecs/task/HEX", Some(("HEX", "")));
    }

    #[test]
    fn what_only_looks_like_a_container_is_none() {
        check("/", None);
        check("", None);
        check("/system.slice/docker.service", None);
        check("/system.slice/containerd.service", None);
        check("/machine.slice/libpod-conmon-HEX.scope", None);
        check("/kubepods/pod1/crio-conmon-HEX.scope", None);
        check("/user.slice/user-0.slice/session-1.scope", None);
        check("/docker", None);
        check("/docker/web", None);
        check("/user.slice/docker-...scope", None);
        check("/user.slice/machine-...scope", None);
        check("/user.slice/systemd-nspawn@...service", None);
        check("/user.slice/systemd-nspawn@.service", None);
        check("/user.slice/lxc.payload...", None);
        check("/user.slice/lxc.payload.", None);
        check("/lxc/..", None);
        check("/system.slice/crun-.scope", None);
        check("/docker-machine", None);
    }

    #[test]
    fn groups_of_version_1_count_where_cgroup2_has_none() {
        let placed = |lines: &str| {
            let placed = Placed::parse(&lines.replace("HEX", HEX));
            let container = placed.container.map(|container| container.engine);
            (placed.cgroup.unwrap_or_default().replace(HEX, "HEX"), container, placed.unit)
        };
        let some = |text: &str| Some(text.to_owned());
        for (lines, expected) in [
            ("0::/system.slice/a.service\n", ("/system.slice/a.service", None, some("a.service"))),
            ("5:cpu:/\n4:pids:/docker/HEX\n0::/\n", ("/docker/HEX", some("docker"), None)),
            ("4:pids:/docker/HEX\n0::/user.slice\n", ("/docker/HEX", some("docker"), None)),
            (
                "4:pids:/user.slice\n1:name=systemd:/system.slice/b.service\n0::/\n",
                ("/system.slice/b.service", None, some("b.service")),
            ),
            ("4:pids:/a:b\n", ("/a:b", None, None)),
            ("0::/\n", ("/", None, None)),
            ("broken", ("", None, None)),
        ] {
            let (path, container, unit) = expected;
            assert_eq!(placed(lines), (path.to_owned(), container, unit), "{lines}");
        }
    }

    #[test]
    fn a_container_in_a_container_is_the_inner_one() {
        check(&format!("/docker/{}/docker/HEX", "f".repeat(64)), Some(("HEX", "docker")));
    }

    #[test]
    fn units_are_told_by_their_endings() {
        assert_eq!(unit("/system.slice/nginx.service"), Some("nginx.service"));
        assert_eq!(unit("/system.slice/nginx.service/worker"), Some("nginx.service"));
        assert_eq!(unit("/user.slice/user-0.slice/session-1.scope"), Some("session-1.scope"));
        assert_eq!(unit("/user.slice/.service"), None);
        assert_eq!(unit("/"), None);
    }
}
