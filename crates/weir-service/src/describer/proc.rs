//! More about a process than the kernel reports: its program, arguments and container, from `/proc` and from what engines of
//! containers write down.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use weir::who::{Container, Placed, Process};
use weir_sys::process::Stat;

/// The most of a process's arguments that is kept, in bytes.
const ARGUMENTS: u64 = 4096;
/// The most of a file that says what a container is called, in bytes.
const LONGEST: u64 = 16 << 20;
/// Containers whose names are remembered; with more, all are asked for again.
const MOST: usize = 10_000;

/// Finds out what a process is, while it runs.
#[derive(Debug)]
pub struct Describer {
    root: PathBuf,
    arguments: bool,
    names: HashMap<String, Option<String>>,
}

impl Describer {
    /// Creates one. `arguments`: whether a process's arguments are wanted, which may have secrets.
    pub fn new(arguments: bool) -> Self {
        Self::below("/".into(), arguments)
    }

    /// The same for a system whose files are below `root`.
    fn below(root: PathBuf, arguments: bool) -> Self {
        Self { root, arguments, names: HashMap::new() }
    }

    /// Returns what else there is to know of a process. `None` if it has ended, or nothing more can be read: other users' programs need
    /// `CAP_SYS_PTRACE`, their control groups no privilege.
    pub fn describe(&mut self, process: &Process) -> Option<Process> {
        let folder = self.root.join("proc").join(process.id.number.to_string());
        let mut described = process.clone();
        if let Ok(program) = fs::read_link(folder.join("exe")) {
            let program = program.to_string_lossy();
            // As the kernel marks a file that has another name, or none, by now.
            described.program = Some(program.strip_suffix(" (deleted)").unwrap_or(&program).to_owned());
        }
        if self.arguments
            && let Ok(arguments) = read(&folder.join("cmdline"), ARGUMENTS)
            && !arguments.is_empty()
        {
            let arguments = arguments.strip_suffix(&[0]).unwrap_or(&arguments);
            let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
            described.arguments = Some(arguments.split(|&byte| byte == 0).map(text).collect());
        }
        if let Ok(groups) = read(&folder.join("cgroup"), LONGEST) {
            let placed = Placed::parse(&String::from_utf8_lossy(&groups));
            described.container = placed.container.map(|container| self.named(container));
            (described.cgroup, described.unit) = (placed.cgroup, placed.unit);
        }
        // Read last: all of it was that process's, and not of one that has got its number since.
        let stat = read(&folder.join("stat"), ARGUMENTS).ok()?;
        let started = Stat::parse(&stat)?.started;
        let is_same = process.id.started == 0 || started == process.id.started;
        // It may run another program since.
        (is_same && is_called(&folder, &process.name) && described != *process).then_some(described)
    }

    fn named(&mut self, mut container: Container) -> Container {
        if self.names.len() >= MOST {
            self.names.clear();
        }
        let (root, engine) = (&self.root, container.engine.as_str());
        let known = self.names.entry(container.id.clone());
        container.name = known.or_insert_with(|| name(root, engine, &container.id)).clone();
        container
    }
}

/// Returns what people call a container, as its engine has written it down.
fn name(root: &Path, engine: &str, id: &str) -> Option<String> {
    match engine {
        "docker" => docker(root, id).or_else(|| kubernetes(root, id)),
        "podman" => podman(root, id),
        // Their ids are names.
        "lxc" | "systemd" | "crun" | "garden" => None,
        _ => kubernetes(root, id),
    }
}

/// `/var/lib/docker/containers/ID/config.v2.json`: `"Name":"/web"`.
fn docker(root: &Path, id: &str) -> Option<String> {
    let file = root.join("var/lib/docker/containers").join(id).join("config.v2.json");
    let config: serde_json::Value = serde_json::from_slice(&read(&file, LONGEST).ok()?).ok()?;
    let name = config.get("Name")?.as_str()?;
    Some(name.strip_prefix('/').unwrap_or(name).to_owned())
}

/// `/var/lib/containers/storage/*-containers/containers.json`: `[{"id":"...","names":["web"]}]`.
fn podman(root: &Path, id: &str) -> Option<String> {
    let storage = fs::read_dir(root.join("var/lib/containers/storage")).ok()?;
    storage.filter_map(Result::ok).find_map(|folder| {
        let list = read(&folder.path().join("containers.json"), LONGEST).ok()?;
        let list: serde_json::Value = serde_json::from_slice(&list).ok()?;
        let container = list.as_array()?.iter().find(|container| container["id"] == id)?;
        Some(container["names"][0].as_str()?.to_owned())
    })
}

/// `/var/log/containers/POD_NAMESPACE_NAME-ID.log`, which every engine of Kubernetes has: `NAMESPACE/POD/NAME`.
fn kubernetes(root: &Path, id: &str) -> Option<String> {
    let logs = fs::read_dir(root.join("var/log/containers")).ok()?;
    logs.filter_map(Result::ok).find_map(|log| {
        let log = log.file_name().into_string().ok()?;
        let rest = log.strip_suffix(".log")?.strip_suffix(id)?.strip_suffix('-')?;
        let mut parts = rest.splitn(3, '_');
        let (pod, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
        Some(format!("{namespace}/{pod}/{name}"))
    })
}

fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns whether a process or one of its threads has this name: some kernels tell only the thread's. After an `execve` there is one
/// thread, called after the new program.
fn is_called(folder: &Path, name: &str) -> bool {
    let is_its = |file: &Path| {
        read(file, ARGUMENTS).is_ok_and(|its| {
            let its = its.strip_suffix(b"\n").unwrap_or(&its);
            String::from_utf8_lossy(its) == name
        })
    };
    let threads = || fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
    is_its(&folder.join("comm")) || threads().any(|thread| is_its(&thread.path().join("comm")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use weir::who::ProcessId;

    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn process(number: u32, started: u64) -> Process {
        Process {
            id: ProcessId { number, started },
            parent: 1,
            user: 0,
            name: "nginx".to_owned(),
            program: None,
            arguments: None,
            cgroup: None,
            container: None,
            unit: None,
        }
    }

    /// A system with one process, 7, which is in these groups.
    fn system(groups: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let folder = root.path().join("proc/7");
        fs::create_dir_all(&folder).expect("a directory");
        let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).expect("a file");
        let numbers = (5..=21).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
        write("stat", format!("7 (a) b) S 1 {numbers} 4711 23 24\n").as_bytes());
        write("comm", b"nginx\n");
        write("cmdline", b"nginx\0-g\0daemon off;\0");
        write("cgroup", groups.as_bytes());
        symlink("/usr/sbin/nginx (deleted)", folder.join("exe")).expect("a link");
        root
    }

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    #[track_caller]
    fn described(root: &Path) -> Process {
        Describer::below(root.into(), true).describe(&process(7, 4711)).expect("it runs")
    }

    #[test]
    fn a_process_is_described_by_proc() {
        let root = system("0::/system.slice/nginx.service\n");
        let expected = Process {
            program: Some("/usr/sbin/nginx".to_owned()),
            arguments: Some(["nginx", "-g", "daemon off;"].map(str::to_owned).to_vec()),
            cgroup: Some("/system.slice/nginx.service".to_owned()),
            unit: Some("nginx.service".to_owned()),
            ..process(7, 4711)
        };
        assert_eq!(described(root.path()), expected);
        let silent =
            Describer::below(root.path().into(), false).describe(&process(7, 4711)).expect("it runs");
        assert_eq!(silent.arguments, None);
    }

    #[test]
    fn another_process_with_the_number_is_not_described() {
        let root = system("0::/\n");
        let mut describer = Describer::below(root.path().into(), true);
        assert_eq!(describer.describe(&process(7, 4712)), None);
        assert_eq!(describer.describe(&process(8, 4711)), None);
        assert!(describer.describe(&process(7, 0)).is_some(), "the start is not known");
        let before = Process { name: "bash".to_owned(), ..process(7, 4711) };
        assert_eq!(describer.describe(&before), None, "it runs another program");
        put(root.path(), "proc/7/task/7/comm", "nginx\n");
        assert_eq!(describer.describe(&before), None, "so do its threads");
        let worker = Process { name: "worker".to_owned(), ..process(7, 4711) };
        put(root.path(), "proc/7/task/9/comm", "worker\n");
        assert!(describer.describe(&worker).is_some(), "a thread of it");
        let any = Process { name: "\u{fffd}".to_owned(), ..process(7, 4711) };
        fs::write(root.path().join("proc/7/comm"), b"\xff\n").expect("a file");
        assert!(describer.describe(&any).is_some(), "names may have any bytes");
    }

    #[test]
    fn containers_have_the_names_that_their_engines_write_down() {
        let root = system(&format!("0::/system.slice/docker-{ID}.scope\n"));
        put(
            root.path(),
            &format!("var/lib/docker/containers/{ID}/config.v2.json"),
            r#"{"ID":"x","Name":"/web"}"#,
        );
        let container = described(root.path()).container.expect("a container");
        assert_eq!((container.id.as_str(), container.name.as_deref()), (ID, Some("web")));

        let root = system(&format!("0::/machine.slice/libpod-{ID}.scope/container\n"));
        put(
            root.path(),
            "var/lib/containers/storage/overlay-containers/containers.json",
            &format!(r#"[{{"id":"other","names":["x"]}},{{"id":"{ID}","names":["db"]}}]"#),
        );
        let container = described(root.path()).container.expect("a container");
        assert_eq!((container.engine.as_str(), container.name.as_deref()), ("podman", Some("db")));

        let root = system(&format!("0::/kubepods.slice/pod1.slice/cri-containerd-{ID}.scope\n"));
        put(root.path(), &format!("var/log/containers/shop-1_prod_web-{ID}.log"), "");
        let container = described(root.path()).container.expect("a container");
        assert_eq!(container.name.as_deref(), Some("prod/shop-1/web"));
    }
}
