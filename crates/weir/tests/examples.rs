//! The examples that need no interface, judged by tcpdump, tshark and capinfos.

use std::env;
use std::path::Path;
use std::process::{Command, Output};

/// Runs an example, which cargo builds next to this test.
fn example(name: &str, arguments: &[&str]) -> Output {
    let test = env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples").join(name);
    Command::new(&program).args(arguments).output().unwrap_or_else(|error| {
        panic!("{}: {error}; build it with: cargo build -p weir --examples", program.display())
    })
}

fn text(Output { status, stdout, stderr }: Output) -> String {
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// Returns a judge's output, or `None` with a message if it is not installed.
fn judge(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(text(output)),
        Err(error) => {
            weir_skip::this_test(format_args!("{program}: {error}"));
            None
        }
    }
}

/// A file of a hundred packets.
fn write(directory: &Path) -> String {
    let file = directory.join("numbers.pcapng").to_str().unwrap().to_owned();
    text(example("write", &[&file]));
    file
}

#[test]
fn write_makes_a_file_that_others_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path());
    if let Some(counted) = judge("capinfos", &["-M", "-c", &file]) {
        assert!(
            counted.lines().any(|line| line.split_whitespace().eq("Number of packets: 100".split(' '))),
            "{counted}"
        );
    }
    let fields =
        ["frame.time_epoch", "frame.interface_name", "ip.checksum.status", "udp.length", "data.data"];
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let arguments: Vec<_> =
        ["-o", "ip.check_checksum:TRUE", "-T", "fields", "-r", &file].into_iter().chain(fields).collect();
    if let Some(seen) = judge("tshark", &arguments) {
        let ours =
            (0..100).map(|number| format!("1700000000.{number:03}000000\tmade-up\t1\t10\t{number:04x}"));
        assert_eq!(seen.lines().collect::<Vec<_>>(), ours.collect::<Vec<_>>());
    }
}

#[test]
fn read_prints_the_packets_that_tcpdump_prints() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path());
    for (filter, packets) in [("", 100), ("udp[8:2] >= 60 and src host 192.0.2.1", 40), ("tcp", 0)] {
        let printed = text(example("read", &[&file, filter]));
        assert_eq!(printed.lines().count(), packets, "{filter}: {printed}");
        let arguments = ["-nn", "-tt", "--time-stamp-precision=nano", "-r", &file, filter];
        if let Some(seen) = judge("tcpdump", &arguments) {
            let times = |lines: &str| {
                lines.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect::<Vec<_>>()
            };
            assert_eq!(times(&printed), times(&seen), "{filter}");
        }
    }
}

#[test]
fn read_tells_what_is_wrong() {
    let output = example("read", &["/nowhere.pcap"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("/nowhere.pcap: cannot be opened"), "{errors}");
}
