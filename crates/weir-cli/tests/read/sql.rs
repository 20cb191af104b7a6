//! `weir sql`: every view, over files that weir has written, in engines of others. All have to find the same, and the sums of the account.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use weir::writer::Format;

use crate::support::{EPOCH, Place, frames, succeeds, weir, write};

/// The rows of each view, as texts, sorted.
type Answers = BTreeMap<String, Vec<String>>;

type End = ([u8; 4], u16);

/// A segment of TCP without options, over IPv4 and Ethernet.
fn segment(from: End, to: End, [seq, ack]: [u32; 2], flags: u8, length: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 40 + length, 0, 0, 0, 0, 64, 6, 0, 0]);
    frame.extend(from.0.iter().chain(&to.0));
    frame.extend(from.1.to_be_bytes().into_iter().chain(to.1.to_be_bytes()));
    frame.extend(seq.to_be_bytes().into_iter().chain(ack.to_be_bytes()));
    frame.extend([0x50, flags, 0xff, 0, 0, 0, 0, 0]);
    frame.resize(frame.len() + usize::from(length), 0);
    frame
}

/// Packets with their times: all that weir-dissect is tested with, a scan, and connections of which one has lost a segment.
fn packets(start: u64) -> Vec<(u64, Vec<u8>)> {
    const MS: u64 = 1_000_000;
    let [fin, syn, rst, ack] = [1_u8, 2, 4, 16];
    let mut packets: Vec<_> = (0..).map(|n| start + n * MS + n).zip(frames()).collect();
    let scanner = |port| ([10, 9, 9, 9], port);
    for host in 1..=60 {
        let (time, target) = (start + u64::from(host) * MS, ([10, 1, 0, host], 22));
        packets.push((time, segment(scanner(4000), target, [1, 0], syn, 0)));
        if host % 2 == 0 {
            packets.push((time + MS, segment(target, scanner(4000), [0, 2], rst | ack, 0)));
        }
    }
    for client in 1..=3 {
        let (one, other) = (([10, 2, 0, client], 40_000), ([10, 3, 0, 1], 8443));
        let answer = u64::from(client) * 30 * MS;
        let steps = [
            (0, segment(one, other, [100, 0], syn, 0)),
            (answer, segment(other, one, [500, 101], syn | ack, 0)),
            (answer + MS, segment(one, other, [101, 501], ack, 60)),
            (answer + 2 * MS, segment(other, one, [501, 161], ack, 90)),
            (answer + 9 * MS, segment(other, one, [501, 161], ack, 90)),
            (answer + 10 * MS, segment(one, other, [161, 591], fin | ack, 0)),
            (answer + 11 * MS, segment(other, one, [591, 162], fin | ack, 0)),
        ];
        packets.extend(steps.into_iter().map(|(time, frame)| (start + time, frame)));
    }
    packets.sort();
    packets
}

/// Writes the files of two sensors with these columns, an hour apart. Returns their directory, and the sum of their accounts:
/// flows, packets and bytes.
fn files(place: &Place, name: &str, columns: [&str; 2]) -> (PathBuf, [u64; 3]) {
    let directory = place.path(name);
    let mut sums = [0; 3];
    for (start, columns, sensor) in [(EPOCH, columns[0], "7"), (EPOCH + 3_600_000_000_000, columns[1], "tap")]
    {
        let file = place.path("trace.pcapng");
        let packets = packets(start);
        let packets: Vec<_> = packets.iter().map(|(time, data)| (0, *time, data.as_slice(), 0)).collect();
        write(&file, Format::Pcapng, &[("eth9", 1)], &packets);
        let to = format!("file:{}?format=parquet&columns={columns}&sensor={sensor}", directory.display());
        let text = succeeds(&["flows", "--json", "-q", "--to", &to, "-r"], &[&file]);
        let account: Value = serde_json::from_str(text.lines().last().expect("an account")).expect("JSON");
        for (sum, key) in sums.iter_mut().zip(["ended", "exported_packets", "bytes"]) {
            *sum += account["flows"][key].as_u64().expect("a number");
        }
    }
    (directory, sums)
}

fn sql(engine: &str, from: &Path) -> String {
    succeeds(&["sql", "--for", engine, "--from"], &[from])
}

/// Returns rows as texts. Engines round differently in the last digits.
fn texts(rows: &[Value]) -> Vec<String> {
    let value = |value: &Value| match value.as_f64().filter(|_| value.is_f64()) {
        Some(number) => format!("{number:.9}"),
        None => value.to_string(),
    };
    let row = |row: &Value| {
        let row = row.as_object().expect("an object");
        let mut cells: Vec<_> = row.iter().map(|(key, cell)| format!("{key}={}", value(cell))).collect();
        cells.sort();
        cells.join(" ")
    };
    let mut texts: Vec<_> = rows.iter().map(row).collect();
    texts.sort();
    texts
}

fn run(command: &mut Command, input: &str, place: &Place) -> String {
    let file = place.path("input");
    fs::write(&file, input).expect("room");
    let output = command
        .env("TZ", "UTC")
        .stdin(Stdio::from(File::open(&file).expect("a file")))
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; `scripts/setup test` installs DuckDB"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What DuckDB finds in each view: made in one process, asked for in others.
fn duckdb(place: &Place, sql: &str) -> Answers {
    let database = place.path("flows.db");
    let _none = fs::remove_file(&database);
    assert_eq!(run(Command::new("duckdb").arg(&database), sql, place), "");
    let views = sql.split(" VIEW ").skip(1).filter_map(|rest| rest.split_whitespace().next());
    let ask = |view: &str| {
        let query = format!("SELECT * FROM {view}");
        let rows = run(Command::new("duckdb").arg("-jsonlines").arg(&database).arg(query), "", place);
        let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
        (view.to_owned(), texts(&rows))
    };
    views.map(ask).collect()
}

/// Returns the number behind `key` in a row.
fn number(row: &str, key: &str) -> u64 {
    let cell = row.split(' ').find_map(|cell| cell.strip_prefix(key)?.strip_prefix('=')).expect(key);
    cell.parse().expect("a number")
}

/// Whether hosts have sent and received what the account says.
fn assert_sums(answers: &Answers, [flows, packets, bytes]: [u64; 3]) {
    let sum = |view: &str, key: &str| answers[view].iter().map(|row| number(row, key)).sum::<u64>();
    let hosts = ["flows_as_client", "sent_packets", "received_packets", "sent_bytes", "received_bytes"];
    assert_eq!(hosts.map(|key| sum("flows_by_host", key)), [flows, packets, packets, bytes, bytes]);
    for view in ["by_application", "by_hour", "conversations"] {
        assert_eq!(
            ["flows", "packets", "bytes"].map(|key| sum(view, key)),
            [flows, packets, bytes],
            "{view}"
        );
    }
    assert_eq!(answers["flows"].len() as u64, flows);
}

#[test]
fn duckdb_has_every_view_and_sums_by_host_are_those_of_the_account() {
    let place = Place::new();
    let (all, account) = files(&place, "all", ["all", "all"]);
    let answers = duckdb(&place, &sql("duckdb", &all));
    assert_sums(&answers, account);
    assert_eq!(answers.len(), 11);
    let has = |view: &str, cells: &str| {
        let found = answers[view]
            .iter()
            .any(|row| cells.split(' ').all(|cell| row.split(' ').any(|has| has == cell)));
        assert!(found, "{view}: {cells}: {:#?}", answers[view]);
    };
    has(
        "host_flows",
        "host=\"10.3.0.1\" peer=\"10.2.0.1\" side=\"server\" sent_packets=4 received_packets=3 sensor=\"7\"",
    );
    has("top_talkers", "host=\"10.9.9.9\" flows=120 peers=60 sent_bytes=4800 received_bytes=2400 bytes=7200");
    has(
        "conversations",
        "one=\"10.2.0.2\" other=\"10.3.0.1\" flows=2 packets=14 bytes_sent_by_one=360 bytes_sent_by_other=680",
    );
    has("by_application", "application=\"tcp/22\" flows=120 clients=1 servers=60");
    has("scans", "src=\"10.9.9.9\" hosts=60 ports=1 flows=60 unanswered=30 refused=30");
    assert_eq!(answers["scans"].len(), 2);
    has("retransmissions", "src=\"10.2.0.3\" by_client=0 by_server=2 packets=14 percent=14.285714286");
    has(
        "slow_servers",
        "dst=\"10.3.0.1\" dport=8443 connections=6 mean=0.060000000 p95=0.090000000 longest=0.090000000",
    );
    assert!(answers["by_hour"].len() == 2 && !answers["by_name"].is_empty());

    // The basic columns suffice for each view; and files with and without the others go together, as a comment says.
    let (basic, _) = files(&place, "basic", ["basic", "basic"]);
    let of_basic = duckdb(&place, &sql("duckdb", &basic));
    let (mixed, _) = files(&place, "mixed", ["all", "basic"]);
    let text = sql("duckdb", &mixed);
    let (before, advice) = text.split_once("and others not, add: ").expect("advice");
    let (advice, rest) = advice.split_once('\n').expect("a line");
    let of_mixed = duckdb(&place, &format!("{before}\n{}", rest.replacen("})", &format!("}}{advice})"), 1)));
    let views = |answers: &Answers| {
        // Their hours are those when this test ran.
        let mut views = answers.clone();
        for view in ["flows", "host_flows"] {
            views.remove(view);
        }
        views
    };
    assert_eq!(views(&of_basic), views(&answers));
    assert_eq!(views(&of_mixed), views(&answers));
    assert_eq!(of_mixed["flows"].len(), answers["flows"].len());
    assert!(
        of_mixed["flows"].iter().all(|row| row.contains("sensor=\"7\"") != row.contains("first_ns=null"))
    );
}

#[test]
fn what_sql_cannot_say_is_told() {
    for (args, told) in [
        (&["--for", "mysql"][..], "invalid value 'mysql'"),
        (&["--for", "spark", "--from", "/it's"], "cannot contain"),
        (&["--for", "spark", "--from", "gs://lake"], "allowed: DIR, or s3://BUCKET/PREFIX"),
        (&["--for", "spark", "--endpoint", "http://h:9"], "--endpoint is for files in a store"),
    ] {
        let output = weir(&[&["sql"], args].concat(), &[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(told), "{args:?}: {said}");
    }
}

/// They need engines that pip installs: `make test-engines`, `make test-spark`.
mod engines {
    use super::*;
    use crate::gateway::{BUCKET, Gateway};

    /// Of the store.
    const KEYS: [(&str, &str); 3] =
        [("AWS_ACCESS_KEY_ID", "weir"), ("AWS_SECRET_ACCESS_KEY", "a secret"), ("AWS_REGION", "us-east-1")];

    const ALL: [&str; 2] = ["all", "all"];
    const MIXED: [&str; 2] = ["all", "basic"];

    /// What an engine finds in each view.
    fn answers(engine: &str, sql: &str, directory: &Path, place: &Place) -> Answers {
        let python = std::env::var_os("WEIR_ENGINES").expect("run `make test-engines` or `make test-spark`");
        let mut ask = Command::new(python);
        ask.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/read/ask.py")).arg(engine).arg(directory);
        let answer = |line: &str| {
            let answer: Value = serde_json::from_str(line).expect("JSON");
            let rows = answer["rows"].as_array().expect("rows");
            (answer["view"].as_str().expect("a name").to_owned(), texts(rows))
        };
        run(ask.envs(KEYS), sql, place).lines().map(answer).collect()
    }

    /// `columns`: of the files of both sensors, each time.
    fn asks(engine: &str, dialect: &str, columns: &[[&str; 2]]) {
        let place = Place::new();
        for (name, columns) in ["one", "two"].into_iter().zip(columns.iter().copied()) {
            let (directory, account) = files(&place, name, columns);
            let answers = answers(engine, &sql(dialect, &directory), &directory, &place);
            assert_sums(&answers, account);
            let judge = sql("duckdb", &directory).replacen("})", "}, union_by_name = true)", 1);
            let expected = duckdb(&place, &judge);
            for (view, rows) in &expected {
                assert_eq!(answers.get(view), Some(rows), "{view}");
            }
        }
    }

    #[test]
    fn clickhouse_answers_as_duckdb_does() {
        asks("chdb", "clickhouse", &[ALL, MIXED]);
    }

    #[test]
    fn clickhouse_finds_in_a_store_what_weir_ship_has_put_there() {
        let place = Place::new();
        let (directory, account) = files(&place, "flows", ["all", "basic"]);
        fs::create_dir_all(place.path("store").join(BUCKET)).expect("a bucket");
        let gateway = Gateway::start(&place.path("store"), None);
        let endpoint = format!("http://127.0.0.1:{}", gateway.port);
        let mut ship = Command::new(env!("CARGO_BIN_EXE_weir"));
        ship.arg("ship").arg(&directory).args([
            "s3://lake/flows",
            "--once",
            "--delete",
            "--endpoint",
            &endpoint,
        ]);
        run(ship.envs(KEYS), "", &place);
        let sql = succeeds(
            &["sql", "--for", "clickhouse", "--from", "s3://lake/flows", "--endpoint", &endpoint],
            &[],
        );
        assert_sums(&answers("chdb", &sql, &directory, &place), account);
    }

    #[test]
    fn datafusion_answers_as_duckdb_does() {
        // It knows the columns from one file, so all have to have the same.
        asks("datafusion", "duckdb", &[ALL, ["basic", "basic"]]);
    }

    #[test]
    fn spark_with_two_workers_answers_as_duckdb_does() {
        asks("spark", "spark", &[MIXED]);
    }
}
