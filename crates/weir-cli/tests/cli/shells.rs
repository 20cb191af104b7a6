//! What zsh and fish themselves complete; for bash see `arguments.rs`.

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;
use weir_lab::root_test;

use crate::harness::{Mounts, capture, directory, network, path, weir};
use crate::terminal::Terminal;

/// Where `weir` of this build is, for shells that look for it.
fn search_path() -> String {
    let ours = std::path::Path::new(env!("CARGO_BIN_EXE_weir")).parent().expect("a directory");
    format!("{}:{}", ours.display(), std::env::var("PATH").expect("a path"))
}

/// Mounts a /run with the sockets of captures and a namespace called web.
fn own_run(directory: &TempDir) -> String {
    let kept = path(directory, "sockets");
    format!(
        "mkdir {kept} && mount --bind /run/weir {kept} && mount -t tmpfs none /run && \
         mkdir /run/weir /run/netns && mount --bind {kept} /run/weir && touch /run/netns/web"
    )
}

fn is_there(shell: &str) -> bool {
    let version = Command::new(shell).arg("--version").output();
    version.map_err(|error| weir_skip::this_test(format_args!("{shell}: {error}"))).is_ok()
}

#[root_test]
fn root_zsh_completes_what_only_this_machine_knows() {
    if !Terminal::is_there() || !is_there("zsh") {
        return;
    }
    let (network, directory) = (network(), directory());
    let functions = path(&directory, "functions");
    fs::create_dir(&functions).expect("a directory");
    fs::write(format!("{functions}/_weir"), weir(&["completions", "zsh"]).output().expect("weir").stdout)
        .expect("room");
    let startup = format!(
        "PATH={}\nfpath=({functions} $fpath)\nautoload -Uz compinit && compinit -u -D\nPS1='ready '\n",
        search_path()
    );
    fs::write(path(&directory, ".zshrc"), startup).expect("room");
    let running = capture(&network, &["-w", &path(&directory, "all.pcapng")]);
    let process = running.id().to_string();

    // In namespaces of its own, with names that nobody may execute.
    let script = path(&directory, "shell");
    let (namespaces, home) = (own_run(&directory), path(&directory, ""));
    let prepare =
        format!("{namespaces} && mount -t sysfs none /sys && ip link add 'x$(id)' type veth peer name y0");
    fs::write(&script, format!("{prepare} && exec env ZDOTDIR={home} zsh -i")).expect("room");
    let shell = format!("unshare --net --mount sh {script}");
    let terminal = Terminal::start(&network, path(&directory, "socket"), (100, 30), &shell);
    terminal.wait_for("ready");
    for (typed, completed) in [
        ("weir capture --snap", "weir capture --snapshot-length"),
        ("weir capture -i y", "weir capture -i y0 "),
        ("weir count --interface an", "weir count --interface any "),
        ("weir -n -i y", "weir -n -i y0 "),
        ("weir -i y0 --snap", "weir -i y0 --snapshot-length"),
        ("weir capture -i x", r"weir capture -i x\$\(id\) "),
        ("weir devices y", "weir devices y0 "),
        ("weir forward y", "weir forward y0 "),
        ("weir forward y0 l", "weir forward y0 lo "),
        ("weir doctor -i y", "weir doctor -i y0 "),
        ("weir capture --netns w", "weir capture --netns web "),
    ] {
        // The line behind it shows that the keys before have had their effect.
        terminal.types(&["C-u", typed, "Tab", "#", "C-l"]);
        terminal.wait_for(&format!("ready {completed}"));
    }
    // It takes no `any`.
    terminal.types(&["C-u", "weir doctor -i an", "Tab", "#", "C-l"]);
    terminal.wait_for("weir doctor -i an#");
    // It is one of those that run, or the only one.
    terminal.types(&["C-u", "C-l", "weir ctl status -t ", "Tab", "Tab"]);
    terminal.wait_for(&process);
    running.interrupt().succeeded();
}

#[root_test]
fn root_fish_completes_what_only_this_machine_knows() {
    if !is_there("fish") {
        return;
    }
    let (network, directory) = (network(), directory());
    let running = capture(&network, &["-w", &path(&directory, "all.pcapng")]);
    let process = running.id().to_string();
    let script = path(&directory, "weir.fish");
    fs::write(&script, weir(&["completions", "fish"]).output().expect("weir").stdout).expect("room");
    let namespaces =
        Mounts::with("mkdir -p /run/netns && mount -t tmpfs none /run/netns && touch /run/netns/web");
    let completed = |typed: &str| -> Vec<String> {
        let mut fish = namespaces.program("fish");
        fish.args(["--no-config", "-c", "source $argv[1]; complete -C $argv[2]", &script, typed]);
        let Output { status, stdout, stderr } = fish.env("PATH", search_path()).output().expect("fish");
        assert!(status.success() && stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
        let lines = String::from_utf8_lossy(&stdout).into_owned();
        lines.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect()
    };
    for (typed, expected) in [
        ("weir capture --snap", "--snapshot-length"),
        ("weir capture -i l", "lo"),
        ("weir count --interface an", "any"),
        ("weir devices l", "lo"),
        ("weir -i l", "lo"),
        ("weir -i an", "any"),
        ("weir forward l", "lo"),
        ("weir capture --netns ", "web"),
    ] {
        assert_eq!(completed(typed), [expected], "{typed}");
    }
    assert_eq!(completed("weir doctor -i an"), [""; 0], "it takes no `any`");
    assert!(completed("weir ctl status -t ").contains(&process), "{process}");
    running.interrupt().succeeded();
}
