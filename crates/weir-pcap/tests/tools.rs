//! Runs Debian's tcpdump and tshark, unchanged, on both libraries, and compares what they print and write.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Frames of many protocols: link type, bytes on the wire, bytes captured.
const FRAMES: &str = include_str!("../../weir-dissect/tests/frames.txt");

const EXPRESSIONS: [&str; 12] = [
    "ip",
    "ip6",
    "not ip",
    "tcp port 80",
    "udp or icmp",
    "host 10.0.0.1 and not port 80",
    "src net 10.0.0.0/24",
    "vlan",
    "greater 70",
    "ether[0] & 1 = 1",
    "tcp[tcpflags] & tcp-syn != 0",
    "ip6 multicast or arp",
];

/// Captures to read, and our library under its names.
struct Bench {
    directory: TempDir,
    files: Vec<PathBuf>,
}

impl Bench {
    /// The corpus of the repository, and a file of each link type in `FRAMES`, in three forms.
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        // cargo builds it next to the tests.
        let library = std::env::current_exe().expect("this program").with_file_name("libweir_pcap.so");
        assert!(library.exists(), "cargo has not built {}", library.display());
        let lib = directory.path().join("lib");
        fs::create_dir(&lib).expect("a directory");
        for soname in ["libpcap.so.0.8", "libpcap.so.1"] {
            symlink(&library, lib.join(soname)).expect("a link");
        }
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        let entries = corpus.read_dir().expect("the corpus").map(|entry| entry.expect("an entry").path());
        let read_by_both =
            |path: &PathBuf| path.extension().is_some_and(|end| end == "pcap" || end == "pcapng");
        let mut files: Vec<PathBuf> = entries.filter(read_by_both).collect();
        assert!(files.len() > 20, "{files:?}");
        for (form, magic) in [("micro", 0xa1b2_c3d4u32), ("nano", 0xa1b2_3c4d), ("swapped", 0xd4c3_b2a1)] {
            for (link_type, file) in made(magic) {
                let path = directory.path().join(format!("{form}-{link_type}.pcap"));
                fs::write(&path, file).expect("a file can be written");
                files.push(path);
            }
        }
        files.sort();
        Self { directory, files }
    }

    /// Runs a program on a library; the `WRITTEN` argument is where it may write. Returns what it wrote, too.
    fn run<S: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: &[S],
        input: Option<&Path>,
        ours: bool,
    ) -> (Output, Option<Vec<u8>>) {
        let written = self.directory.path().join(WRITTEN);
        let _none_before = fs::remove_file(&written);
        let mut command = Command::new(program);
        command.args(arguments).env("LC_ALL", "C").current_dir(self.directory.path());
        command.env_remove("LD_LIBRARY_PATH");
        if ours {
            command.env("LD_LIBRARY_PATH", self.directory.path().join("lib"));
        }
        command.stdin(input.map_or_else(Stdio::null, |path| fs::File::open(path).expect("a file").into()));
        let output = command.output().expect("the program starts");
        (output, fs::read(written).ok())
    }

    /// Runs a program on both libraries, and compares.
    fn compare<S: AsRef<OsStr> + std::fmt::Debug>(
        &self,
        program: &str,
        arguments: &[S],
        input: Option<&Path>,
    ) {
        self.ours_does(self.run(program, arguments, input, false), program, arguments, input);
    }

    /// Runs a program on our library, and compares with what it did on the system's.
    fn ours_does<S: AsRef<OsStr> + std::fmt::Debug>(
        &self,
        (system, system_wrote): (Output, Option<Vec<u8>>),
        program: &str,
        arguments: &[S],
        input: Option<&Path>,
    ) {
        let (ours, ours_wrote) = self.run(program, arguments, input, true);
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let what = format!("{program} {arguments:?} on {input:?}");
        assert_eq!(shown(&system.stdout), shown(&ours.stdout), "{what}");
        assert_eq!(shown(&system.stderr), shown(&ours.stderr), "{what}");
        assert_eq!(system.status, ours.status, "{what}");
        assert!(system_wrote == ours_wrote, "{what}: the files differ");
    }

    /// Returns whether a program is there, and that it uses our library if told to.
    fn has(&self, program: &str) -> bool {
        if let Err(error) = Command::new(program).arg("--version").output() {
            weir_skip::this_test(format_args!("{program}: {error}"));
            return false;
        }
        let (output, _) = self.run(program, &["--version"], None, true);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("weir"), "{program} does not use our library:\n{text}");
        true
    }
}

/// The file that a program writes.
const WRITTEN: &str = "written";

/// Returns a file for each link type of `FRAMES`. Its numbers are in the order of this machine, or in the other one if
/// `magic` is swapped.
fn made(magic: u32) -> Vec<(u32, Vec<u8>)> {
    let swapped = magic == 0xd4c3_b2a1;
    let order = |number: u32| if swapped { number.swap_bytes() } else { number }.to_ne_bytes();
    let half = |number: u16| if swapped { number.swap_bytes() } else { number }.to_ne_bytes();
    let mut files: Vec<(u32, Vec<u8>)> = Vec::new();
    for (number, line) in (0u32..).zip(FRAMES.lines().filter(|line| !line.starts_with('#'))) {
        let fields: Vec<&str> = line.split(' ').collect();
        let [link_type, length, data] = fields[..] else { panic!("three fields: {line}") };
        let link_type: u32 = link_type.parse().expect("a number");
        let digits: Vec<char> = data.chars().filter(|digit| *digit != '-').collect();
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("a byte");
        let data: Vec<u8> = digits.chunks(2).map(byte).collect();
        let at = files.iter().position(|(known, _)| *known == link_type).unwrap_or_else(|| {
            let mut header = magic.to_ne_bytes().to_vec();
            header.extend(half(2));
            header.extend(half(4));
            for word in [0, 0, 262_144, link_type] {
                header.extend(order(word));
            }
            files.push((link_type, header));
            files.len() - 1
        });
        let captured = u32::try_from(data.len()).expect("a short frame");
        for word in [1_700_000_000 + number / 7, number, captured, length.parse().expect("a number")] {
            files[at].1.extend(order(word));
        }
        files[at].1.extend(data);
    }
    assert!(files.len() > 3);
    files
}

#[test]
fn tcpdump_prints_the_same() {
    let bench = Bench::new();
    if !bench.has("tcpdump") {
        return;
    }
    let options =
        ["-n", "-nn -e -vvv -XX -tttt", "-n -q -tt -#", "-n --nano -S -A", "-ttttt -n -c 3 -x", "-n -ttt -v"];
    for file in &bench.files {
        for options in options {
            let mut arguments: Vec<&OsStr> = options.split(' ').map(OsStr::new).collect();
            arguments.extend([OsStr::new("-r"), file.as_os_str()]);
            bench.compare("tcpdump", &arguments, None);
        }
        bench.compare("tcpdump", &["-n", "-r", "-"], Some(file));
    }
}

#[test]
fn tcpdump_filters_and_writes_the_same() {
    let bench = Bench::new();
    if !bench.has("tcpdump") {
        return;
    }
    for file in &bench.files {
        let read = [OsStr::new("-r"), file.as_os_str(), OsStr::new("-w")];
        for options in
            [vec!["written"], vec!["written", "--nano"], vec!["-"], vec!["written", "-U", "-c", "2"]]
        {
            let arguments: Vec<&OsStr> =
                read.iter().copied().chain(options.into_iter().map(OsStr::new)).collect();
            bench.compare("tcpdump", &arguments, None);
        }
        // To a filter, the packets of the other forms are the same.
        let is_other_form = ["nano-", "swapped-"]
            .iter()
            .any(|form| file.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(form)));
        let expressions = if is_other_form { &EXPRESSIONS[..2] } else { &EXPRESSIONS };
        // Without the optimiser, whose libpcap drops loads that would reject packets that are cut off.
        for expression in expressions {
            let with = [OsStr::new(WRITTEN), OsStr::new("-O"), OsStr::new(expression)];
            let arguments = [&read[..], &with[..]].concat();
            let system = bench.run("tcpdump", &arguments, None, false);
            // Where libpcap has an expression refused, its text is one of many.
            if system.0.status.success() {
                bench.ours_does(system, "tcpdump", &arguments, None);
            }
        }
    }
}

#[test]
fn tshark_prints_the_same() {
    let bench = Bench::new();
    if !bench.has("tshark") {
        return;
    }
    // tshark reads files itself, but it starts only if it finds all functions that it wants for captures: any few will do.
    let made = bench.files.iter().filter(|path| path.starts_with(bench.directory.path()));
    for file in made.step_by(8) {
        bench.compare("tshark", &[OsStr::new("-n"), OsStr::new("-r"), file.as_os_str()], None);
    }
}
