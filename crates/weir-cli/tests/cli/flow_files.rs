//! `weir flows --to file:DIR` on an interface. DuckDB reads what is written.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use weir_lab::{Generator, Network, Traffic, root_test};

use crate::harness::{Mounts, NOBODY, Running, arrive, directory, network, path, run, start, until};

/// All files of a directory and its folders.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

/// The same, those that are finished, and those that are not.
pub(crate) fn finished_and_hidden(directory: &Path) -> [Vec<PathBuf>; 2] {
    let is_hidden = |path: &PathBuf| path.to_string_lossy().ends_with(".tmp");
    let (hidden, finished) = files_in(directory).into_iter().partition(is_hidden);
    [finished, hidden]
}

/// Sends a packet of each of ten flows.
fn send(network: &Network) {
    let traffic = Traffic::new(100).and_then(|traffic| traffic.flows(10)).expect("frames");
    let traffic = traffic.between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).expect("a generator");
    arrive(network.pair(), || generator.send(10).expect("frames").accepted);
}

/// Sends packets until `directory` has so many finished files.
fn send_until(network: &Network, directory: &Path, files: usize) {
    until("finished files", || {
        send(network);
        let [finished, _] = finished_and_hidden(directory);
        if finished.len() >= files { Ok(()) } else { Err(format!("{finished:?}")) }
    });
}

/// Flows by what has become of them: given, sent, queued, lost.
fn counts(export: &Value) -> [u64; 4] {
    ["given", "sent", "queued", "lost"].map(|field| export[field].as_u64().expect("a number"))
}

pub(crate) fn lines_of(files: &[PathBuf]) -> u64 {
    let lines = |file: &PathBuf| fs::read_to_string(file).expect("it is whole").lines().count();
    files.iter().map(lines).sum::<usize>() as u64
}

#[root_test]
fn root_files_that_have_their_names_are_whole_even_if_weir_is_killed() {
    let (network, directory) = (network(), directory());
    let [columns, lines] = ["columns", "lines"].map(|name| PathBuf::from(path(&directory, name)));
    let to = [
        format!("file:{}?format=parquet&every=1s", columns.display()),
        format!("file:{}?every=24h", lines.display()),
    ];
    let args =
        ["flows", "-i", "rx0", "--json", "-v", "--idle-timeout", "10ms", "--to", &to[0], "--to", &to[1]];
    let killed = || {
        let running = start(&network, &args);
        send_until(&network, &columns, 2);
        until("a file that is not finished", || {
            send(&network);
            let [finished, hidden] = finished_and_hidden(&lines);
            if hidden.is_empty() { Err(format!("{finished:?}")) } else { Ok(()) }
        });
        running.signal(Signal::KILL);
        running.wait();
        finished_and_hidden(&lines)
    };
    // At midnight the file gets its name, perhaps between the look and the signal; the next midnight is far.
    let once = killed();
    let [whole, hidden] = if once[1].is_empty() { killed() } else { once };
    assert!(!hidden.is_empty(), "{whole:?}");
    let [finished, _] = finished_and_hidden(&columns);
    // What root has made is not for others, which is told at once.
    let told = ["cannot write files to ", "Permission denied"];
    run(&network, &[&args[..], &["-Z", "nobody"]].concat()).failed(&told);
    let contents = |files: &[PathBuf]| -> Vec<_> {
        files.iter().map(|file| fs::read(file).expect("it is there")).collect()
    };
    let before = [contents(&finished), contents(&hidden)];

    // A later run leaves alone what is there.
    let running = start(&network, &args);
    send_until(&network, &columns, finished.len() + 1);
    let ended = running.interrupt().succeeded();
    assert_eq!([contents(&finished), before[1].clone()], before);
    let exports = ended.account().0["flows"]["exports"].as_array().expect("two").clone();
    for export in &exports {
        let [given, sent, queued, lost] = counts(export);
        assert_eq!((given > 0, given, queued, lost), (true, sent, 0, 0), "{export}");
    }
    assert_eq!(lines_of(&finished_and_hidden(&lines)[0]) - lines_of(&whole), counts(&exports[1])[1]);
    let query = format!(
        "SELECT count(*) AS flows, sum(packets) AS packets FROM '{}/**/*.parquet'",
        columns.display()
    );
    let output = Command::new("duckdb").args(["-csv", "-noheader", "-c", &query]).output();
    let output = output.expect("duckdb: `scripts/setup test` installs it");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let flows: u64 = said.split(',').next().and_then(|flows| flows.parse().ok()).expect("a number");
    // Those of the first run, and those of the last one.
    assert!(flows > counts(&exports[0])[1], "{said}");
}

#[root_test]
fn root_a_full_disk_and_a_missing_directory_cost_flows_and_no_packet() {
    let (network, directory) = (network(), directory());
    let disk = path(&directory, "disk");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    fs::create_dir(&disk).expect("room");
    let mounts = Mounts::with(&format!("mount -t tmpfs -o size=8m none {disk}"));
    let place = |name: &str| PathBuf::from(mounts.path(&format!("{disk}/{name}")));
    let to = format!("file:{disk}/flows?every=1s");
    let args =
        ["flows", "-i", "rx0", "-B", "8MiB", "--json", "--idle-timeout", "10ms", "--to", &to, "-Z", "nobody"];
    let running = Running::spawn(&network, &mut mounts.weir(&args));
    running.wait_until_open();
    assert!(fs::write(place("filler"), vec![0; 16 << 20]).is_err(), "the disk is larger than that");
    send(&network);
    running.wait_for("No space left on device (os error 28); free some space; flows are lost until then");
    send(&network);
    fs::remove_file(place("filler")).expect("it is ours");
    running.wait_for(&format!("flows are written to {to} again"));
    send_until(&network, &place("flows"), 2);

    fs::rename(place("flows"), place("away")).expect("it is ours");
    until("a flow to be lost", || {
        send(&network);
        let told = running.stderr();
        if told.contains("No such file or directory") { Ok(()) } else { Err(told) }
    });
    fs::rename(place("away"), place("flows")).expect("it is ours");
    let [before, _] = finished_and_hidden(&place("flows"));
    send_until(&network, &place("flows"), before.len() + 1);

    let ended = running.interrupt().succeeded();
    ended.account().closes();
    let export = &ended.account().0["flows"]["exports"][0];
    let [given, sent, queued, lost] = counts(export);
    assert_eq!((given, queued), (sent + lost, 0), "{export}");
    assert!(sent > 0 && lost > 0, "{export}");
    let [finished, _] = finished_and_hidden(&place("flows"));
    assert_eq!(lines_of(&finished), sent, "{export}");
    assert_eq!(export["files"]["finished"], finished.len());
    assert!(finished.iter().all(|file| {
        let there = fs::metadata(file).expect("a file");
        (there.uid(), there.mode() & 0o777) == (NOBODY, 0o640)
    }));
    assert!(ended.stderr.contains(" flows were not written to "), "{}", ended.stderr);
}
