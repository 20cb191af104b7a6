//! Losses in the files that tell of them.

use rustix::process::Signal;
use serde_json::Value;

use crate::control::ctl_succeeds;
use crate::files::{files, send};
use crate::harness::{Account, capture, directory, network, path, root_tests, until, weir};

root_tests! { each_file_tells_of_its_own_losses:
    root_each_file_tells_of_its_own_losses_xdp(&["--source", "xdp", "-B", "64KiB", "--chunk-size", "4KiB", "-C", "20KB"]);
    root_each_file_tells_of_its_own_losses_tc(
        &["--source", "tc", "-B", "64KiB", "--chunk-size", "4KiB", "--rotate-count", "150"]
    );
    root_each_file_tells_of_its_own_losses_af_packet(
        &["--source", "af_packet", "--memory", "3MiB", "-C", "150KB"]
    );
}

/// What waits while the process is stopped fills several files, and all losses are known before the first of them ends.
fn each_file_tells_of_its_own_losses(args: &[&str]) {
    let (directory, network) = (directory(), network());
    let running = capture(&network, &[args, &["--json", "-w", &path(&directory, "f.pcapng")]].concat());
    // The last losses are behind the last packet.
    for round in 1..=3 {
        running.signal(Signal::STOP);
        send(&network, 1, 20_000);
        running.signal(Signal::CONT);
        until("all to be written or lost", || {
            let told = ctl_succeeds(&network, &["status", "-t", &running.id().to_string()]);
            let status = Account(serde_json::from_str(&told).expect("JSON"));
            let is_done = status.number("written") + status.number("lost") == round * 20_000;
            if is_done { Ok(()) } else { Err(told) }
        });
    }
    let account = running.interrupt().succeeded().account();
    account.closes();
    let files = files(&directory);
    assert!(files.len() > 5, "{files:?}");
    let output = weir(&["info", "--json"]).args(&files).output().expect("weir");
    let objects: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let (total, each) = objects.split_last().expect("objects");
    let number = |object: &Value, field: &str| object[field].as_u64().expect("a number");
    let (mut lossy, mut received) = (0, 0);
    for (at, file) in each.iter().enumerate() {
        let of = |field| number(&file["interfaces"][0], field);
        assert_eq!(
            (number(file, "lost"), of("received")),
            (of("dropped"), of("packets") + of("dropped")),
            "{file}"
        );
        if at + 1 < each.len() {
            assert_eq!(of("dropped"), of("lost_by_records"), "{file}");
        }
        lossy += u64::from(of("lost_by_records") > 0);
        received += of("received");
    }
    assert!(lossy >= 2, "each time before the next packet: {}", account.0);
    assert_eq!((number(total, "lost"), received), (account.number("lost"), account.number("seen")));
}
