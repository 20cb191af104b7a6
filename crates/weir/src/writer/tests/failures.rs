//! Full disks and closed pipes: what was written stays intact, and is counted correctly.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::sync::Arc;

use weir_savefile::{pcap, record};

use super::super::broker::{FileBroker, OpenedFile, Purpose};
use super::super::disk::Disk;
use super::super::local_broker::LocalBroker;
use super::super::open::Opened;
use super::super::queue::DiskQueue;
use super::super::refusal::Refusal;
use super::super::stream::Stream;
use super::super::template::{Found, Template};
use super::*;

/// Writes until it fails; returns the error and all packets tried.
fn fill(writer: &mut Writer, chunk_packets: u32) -> (WriteError, Vec<Packet>) {
    let mut tried = Vec::new();
    loop {
        let chunk = chunk(0, u32::try_from(tried.len()).unwrap(), chunk_packets);
        let result = put(writer, &chunk);
        tried.extend(chunk);
        if let Err(error) = result {
            return (error, tried);
        }
        assert!(tried.len() < 100_000, "the disk is small");
    }
}

/// Checks after `error` that the file ends after a whole record, that it holds the first packets tried and no more than
/// counted, that the error reports this, and that every later call fails at once with the same error.
fn check(mut writer: Writer, error: &WriteError, tried: &[Packet], path: &Path) {
    let written = writer.written();
    let WriteError::Full { kept, .. } = *error else { panic!("{error}") };
    assert_eq!(kept, Kept { packets: written.packets, bytes: written.bytes });
    assert!(error.to_string().contains(&format!("{} packets", written.packets)));
    assert!(written.packets > 0 && written.packets < tried.len() as u64);
    assert_eq!(written.queues[&(0, 7)], written.packets);

    let file = fs::read(path).unwrap();
    assert_eq!(file.len() as u64, written.bytes);
    let format = writer.options.format;
    let start = encode::start(&interfaces(), &options(format)).unwrap();
    let good = &tried[..usize::try_from(written.packets).unwrap()];
    let expected: Vec<u8> = match format.pcap() {
        None => {
            assert_eq!(record::whole_records(&file[start.len()..]), file.len() - start.len());
            records(good)
        }
        Some(resolution) => {
            assert_eq!(pcap::whole_records(&file[start.len()..]), (good.len(), file.len() - start.len()));
            let mut out = Vec::new();
            encode::to_pcap(resolution, &records(good), &mut out).unwrap();
            out
        }
    };
    assert!(file[start.len()..] == expected, "the file holds what was tried first");

    let room = written.bytes;
    for _ in 0..3 {
        assert_eq!(put(&mut writer, tried).unwrap_err().to_string(), error.to_string());
    }
    assert_eq!(writer.flush().unwrap_err().to_string(), error.to_string());
    assert_eq!(writer.statistics(&account()).unwrap_err().to_string(), error.to_string());
    let (again, result) = writer.finish(&account());
    assert_eq!(again, written);
    assert_eq!(result.unwrap_err().to_string(), error.to_string());
    assert_eq!(len_of(path), room);
}

/// Fills a disk of 1 MiB under `output` with chunks of `chunk_packets` packets.
fn fill_a_small_disk(format: Format, chunk_packets: u32, output: impl Fn(File, Format) -> Box<dyn Output>) {
    let Some(disk) = SmallDisk::new("1m", MountAttrFlags::empty()) else { return };
    let path = disk.path("capture");
    let options = options(format);
    let output = output(File::create(&path).unwrap(), format);
    let opened =
        Opened { output, name: "capture".to_owned(), regular: None, created: false, warnings: Vec::new() };
    let (files, file) = (Files::new(&path, &options).unwrap(), OutFile::new(opened, &path));
    let mut writer = Writer::begin(files, Some(file), &interfaces(), &options).unwrap();
    let (error, tried) = fill(&mut writer, chunk_packets);
    assert!(len_of(&path) > (1 << 20) - 1600, "the disk is used up to its last whole record");
    check(writer, &error, &tried, &path);
}

const FORMATS: [Format; 2] = [Format::Pcapng, Format::Pcap { nanoseconds: true }];

fn through_the_ring(file: File, format: Format) -> Box<dyn Output> {
    Box::new(Disk::new(Arc::new(file), format, &DiskQueue::new()))
}

fn without_a_ring(file: File, format: Format) -> Box<dyn Output> {
    Box::new(Disk::without_ring(Arc::new(file), format))
}

fn as_standard_output(file: File, format: Format) -> Box<dyn Output> {
    Box::new(Stream::new(file, format).unwrap())
}

#[test]
fn root_a_disk_fills_up() {
    for format in FORMATS {
        for chunk_packets in [5, 130, 600] {
            fill_a_small_disk(format, chunk_packets, through_the_ring);
            fill_a_small_disk(format, chunk_packets, without_a_ring);
            fill_a_small_disk(format, chunk_packets, as_standard_output);
        }
    }
}

#[test]
fn a_device_without_room_fails_at_the_start() {
    let error = Writer::create(Path::new("/dev/full"), &interfaces(), &options(Format::Pcapng)).unwrap_err();
    let WriteError::Full { kept, .. } = &error else { panic!("{error}") };
    assert_eq!(*kept, Kept { packets: 0, bytes: 0 });
    assert!(error.to_string().contains("/dev/full"));
}

#[test]
fn a_device_that_takes_everything() {
    let mut writer = Writer::create(Path::new("/dev/null"), &interfaces(), &options(Format::Pcapng)).unwrap();
    put(&mut writer, &chunk(0, 0, 100)).unwrap();
    let (written, result) = writer.finish(&account());
    result.unwrap();
    assert_eq!(written.packets, 100);
}

#[test]
fn a_pipe_whose_reader_goes() {
    let (mut reader, pipe) = io::pipe().unwrap();
    let mut writer = Writer::create(&path_of(&pipe), &interfaces(), &options(Format::Pcapng)).unwrap();
    let name = path_of(&pipe).display().to_string();
    drop(pipe);
    let first = chunk(0, 0, 10);
    put(&mut writer, &first).unwrap();
    let before = writer.written();
    let reader = std::thread::spawn(move || {
        let mut taken = vec![0; 100_000];
        reader.read_exact(&mut taken).unwrap();
        taken
    });
    let (error, tried) = fill(&mut writer, 400);

    let WriteError::Closed { name: named, kept } = &error else { panic!("{error}") };
    assert_eq!(*named, name);
    let written = writer.written();
    assert_eq!(*kept, Kept { packets: written.packets, bytes: written.bytes });
    let start = encode::start(&interfaces(), &options(Format::Pcapng)).unwrap();
    let sent: Vec<u8> = [start, records(&first), records(&tried)].concat();
    assert!(reader.join().unwrap() == sent[..100_000]);
    assert!(written.bytes >= before.bytes && written.bytes < sent.len() as u64);
    assert_eq!(put(&mut writer, &first).unwrap_err().to_string(), error.to_string());
    assert_eq!(writer.written(), written);
}

#[test]
fn a_slow_reader_of_a_pipe_that_does_not_block() {
    let (mut reader, pipe) = io::pipe().unwrap();
    let file = File::from(OwnedFd::from(pipe));
    rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::NONBLOCK).unwrap();
    let mut stream = Stream::new(file, Format::Pcapng).unwrap();
    let reader = std::thread::spawn(move || {
        let (mut all, mut some) = (Vec::new(), vec![0; 50_000]);
        loop {
            // So slow that the pipe, which holds 64 KiB, is full at times.
            std::thread::sleep(Duration::from_millis(5));
            match reader.read(&mut some).unwrap() {
                0 => return all,
                n => all.extend_from_slice(&some[..n]),
            }
        }
    });
    let packets = chunk(0, 0, 500);
    let content = Content::of_queue(0, 0, 500);
    stream.put(WriteRequest { data: Data::Bytes(records(&packets)), content }).unwrap();
    drop(stream);
    assert!(reader.join().unwrap() == records(&packets));
}

/// Data in flight when a thread ends is still written.
#[test]
fn a_writer_that_changes_threads() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let packets = chunk(0, 0, 1600);
    let mut writer = Writer::create(file.path(), &interfaces(), &options(Format::Pcapng)).unwrap();
    for some in packets.chunks(800) {
        let pass_on = move || {
            some.chunks(200).for_each(|chunk| put(&mut writer, chunk).unwrap());
            writer
        };
        writer = std::thread::scope(|scope| scope.spawn(pass_on).join().unwrap());
    }
    let (written, result) = writer.finish(&account());
    result.unwrap();
    assert_eq!(written.packets, 1600);
    let start = encode::start(&interfaces(), &options(Format::Pcapng)).unwrap();
    assert!(fs::read(file.path()).unwrap()[start.len()..].starts_with(&records(&packets)));
}

#[test]
fn a_writer_that_is_dropped_leaves_what_it_took() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let packets = chunk(0, 0, 1600);
    let mut writer = Writer::create(file.path(), &interfaces(), &options(Format::Pcapng)).unwrap();
    packets.chunks(400).for_each(|some| put(&mut writer, some).unwrap());
    drop(writer);
    let start = encode::start(&interfaces(), &options(Format::Pcapng)).unwrap();
    assert!(fs::read(file.path()).unwrap() == [start, records(&packets)].concat());
}

#[test]
fn a_chunk_that_is_no_run_of_records_ends_a_pcap_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let format = Format::Pcap { nanoseconds: true };
    let mut writer = Writer::create(file.path(), &interfaces(), &options(format)).unwrap();
    put(&mut writer, &chunk(0, 0, 100)).unwrap();
    let content = Content::of_queue(0, 0, 1);
    let error = writer.write_records(Data::Bytes(vec![0xff; 64]), content).unwrap_err();
    assert!(matches!(error, WriteError::Malformed(_)));
    assert_eq!(put(&mut writer, &chunk(0, 0, 1)).unwrap_err().to_string(), error.to_string());
    assert_eq!(writer.written().packets, 100);
    assert_eq!(len_of(file.path()), writer.written().bytes);
}

/// Replaces the descriptors of directories.
#[derive(Debug)]
struct OtherDirectories(LocalBroker, fn() -> io::Result<File>);

impl FileBroker for OtherDirectories {
    fn open(&self, path: &Path, opening: Purpose) -> Result<OpenedFile, Refusal> {
        self.0.open(path, opening)
    }

    fn remove(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        self.0.remove(path)
    }

    fn directory(&self, _path: &Path) -> io::Result<File> {
        self.1()
    }

    fn list(&self, template: &Template) -> io::Result<Vec<Found>> {
        self.0.list(template)
    }

    fn run(&self, command: &OsStr, path: &Path) -> Result<(), String> {
        self.0.run(command, path)
    }
}

#[test]
fn a_name_that_cannot_be_brought_to_the_disk_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let finish = |fsync, other| {
        let broker: Option<Arc<dyn FileBroker>> =
            Some(Arc::new(OtherDirectories(LocalBroker::default(), other)));
        let options = WriterOptions { fsync, broker, ..options(Format::Pcapng) };
        let mut writer = Writer::create(&path, &interfaces(), &options).unwrap();
        put(&mut writer, &chunk(0, 0, 10)).unwrap();
        writer.finish(&account()).1
    };
    // `fsync` always fails on a pipe, so a pipe stands in for the directory.
    let pipe = || io::pipe().map(|(reader, _)| File::from(OwnedFd::from(reader)));
    for other in [pipe, || Err(rustix::io::Errno::IO.into())] {
        let error = finish(true, other).unwrap_err();
        assert!(matches!(&error, WriteError::Sync { path: told, .. } if *told == path), "{error}");
        finish(false, other).unwrap();
    }
    finish(true, || File::open("/")).unwrap();
}
