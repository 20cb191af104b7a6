//! `weir-export kafka`, by the program itself, with the brokers that librdkafka has for tests. The test is weir.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _, DefaultConsumerContext};
use rdkafka::message::Message as _;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use weir_export::KafkaArgs;
use weir_export::wire::{Messages, Own, Report, Request};

const BROKERS: i32 = 3;
const TOPIC: &str = "flows";
/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

type Cluster = MockCluster<'static, DefaultProducerContext>;

fn cluster() -> Cluster {
    let cluster = MockCluster::new(BROKERS).expect("brokers");
    cluster.create_topic(TOPIC, 4, 3).expect("a topic");
    cluster
}

fn down(cluster: &Cluster) {
    (1..=BROKERS).for_each(|broker| cluster.broker_down(broker).expect("it is there"));
}

fn up(cluster: &Cluster) {
    (1..=BROKERS).for_each(|broker| cluster.broker_up(broker).expect("it is there"));
}

/// A running weir-export.
struct Export {
    child: Child,
    socket: UnixStream,
    received: Vec<u8>,
}

impl Export {
    fn start(cluster: &Cluster, run: u64, spool: Option<&Path>, spool_size: u64) -> Self {
        let args = KafkaArgs {
            brokers: cluster.bootstrap_servers(),
            topic: TOPIC.to_owned(),
            form: "text".to_owned(),
            run,
            spool: spool.map(Path::to_owned),
            spool_size,
        };
        let (socket, theirs) = UnixStream::pair().expect("a pair");
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-export"));
        let child = command.args(args.words()).stdin(Stdio::from(OwnedFd::from(theirs))).spawn();
        Self { child: child.expect("it starts"), socket, received: Vec::new() }
    }

    fn ask(&mut self, request: &Request) {
        let mut bytes = Vec::new();
        request.put(&mut bytes);
        self.socket.write_all(&bytes).expect("it reads");
    }

    /// Sends ten flows with two messages each.
    fn batch(&mut self, run: u64, id: u64) {
        let mut messages = Messages::default();
        for flow in 0..10 {
            let value = format!("{run}.{id}.{flow}");
            messages
                .add(value.as_bytes(), &[format!("{value}.a").as_bytes(), format!("{value}.b").as_bytes()]);
        }
        self.ask(&Request::Batch { id, messages: messages.into_bytes() });
    }

    fn finish(&mut self, patience: u32) {
        self.ask(&Request::Finish { patience, drain: false });
    }

    /// Waits until it has told that brokers are away.
    fn is_stalled(&mut self) {
        match self.any() {
            Some(Report::News(news)) if news.contains("acknowledges no flows") => {}
            other => panic!("{other:?}"),
        }
    }

    /// Returns the next report that is no news. `None`: it has ended.
    fn report(&mut self) -> Option<Report> {
        loop {
            match self.any() {
                Some(Report::News(_)) => {}
                report => return report,
            }
        }
    }

    fn any(&mut self) -> Option<Report> {
        loop {
            match Report::take(&mut self.received).expect("a report") {
                Some(report) => return Some(report),
                None => {
                    let mut bytes = vec![0; 4096];
                    match self.socket.read(&mut bytes).expect("it lives, or not") {
                        0 => return None,
                        read => self.received.extend_from_slice(&bytes[..read]),
                    }
                }
            }
        }
    }

    /// Returns how many flows are sent, spooled, unspooled of this run, and of earlier ones, when so many are settled or unspooled.
    fn settled(&mut self, expected: u32) -> [u32; 4] {
        let mut counts = [0; 4];
        while counts.iter().sum::<u32>() < expected {
            match self.report().expect("it runs") {
                Report::Settled { spooled, lost: 0, .. } => {
                    counts[0] += 10 - spooled;
                    counts[1] += spooled;
                }
                Report::Unspooled { is_own, flows, lost: 0, .. } => {
                    counts[if is_own { 2 } else { 3 }] += flows
                }
                other => panic!("{other:?}"),
            }
        }
        counts
    }

    fn began(&mut self) -> (Vec<Own>, u64) {
        match self.report() {
            Some(Report::Began { own, earlier }) => (own, earlier),
            other => panic!("{other:?}"),
        }
    }

    fn ends(mut self) {
        assert_eq!(self.report(), Some(Report::Done));
        assert_eq!(self.report(), None);
        assert!(self.child.wait().expect("it was started").success());
    }

    fn kill(mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("it runs");
    }
}

/// Returns how often each message is in the topic, once there are so many different ones, and that no more come.
fn consumed(cluster: &Cluster, expected: usize) -> BTreeMap<String, u32> {
    let consumer: BaseConsumer<DefaultConsumerContext> = ClientConfig::new()
        .set("bootstrap.servers", cluster.bootstrap_servers())
        .set("group.id", format!("judge-{expected}"))
        .set("auto.offset.reset", "earliest")
        .create()
        .expect("a consumer");
    let mut partitions = rdkafka::TopicPartitionList::new();
    for partition in 0..4 {
        partitions.add_partition_offset(TOPIC, partition, rdkafka::Offset::Beginning).expect("a partition");
    }
    consumer.assign(&partitions).expect("they are there");
    let (mut found, began) = (BTreeMap::new(), Instant::now());
    loop {
        let is_whole = found.len() >= expected;
        let Some(message) = consumer.poll(Duration::from_millis(if is_whole { 500 } else { 100 })) else {
            assert!(is_whole || began.elapsed() < LONG, "{} of {expected} messages", found.len());
            if is_whole {
                return found;
            }
            continue;
        };
        // While brokers are away.
        let Ok(message) = message else { continue };
        let value = String::from_utf8(message.payload().expect("a value").to_vec()).expect("text");
        let key = message.key().expect("a key");
        assert_eq!(
            value.strip_suffix(['a', 'b']).map(|rest| rest.trim_end_matches('.').as_bytes()),
            Some(key)
        );
        *found.entry(value).or_insert(0) += 1;
    }
}

#[test]
fn flows_arrive_once_while_brokers_come_and_go() {
    let cluster = cluster();
    let place = tempfile::tempdir().expect("a directory");
    let spool = place.path().join("spool");
    let mut export = Export::start(&cluster, 1, Some(&spool), 1 << 20);
    assert_eq!(export.began(), (Vec::new(), 0));
    (0..20).for_each(|id| export.batch(1, id));
    assert_eq!(export.settled(200), [200, 0, 0, 0]);

    // The first are in flight, and may be with a broker; the others are spooled.
    down(&cluster);
    export.batch(1, 20);
    export.is_stalled();
    (21..40).for_each(|id| export.batch(1, id));
    assert_eq!(export.settled(190), [0, 190, 0, 0]);
    up(&cluster);
    assert_eq!(export.settled(200), [10, 0, 190, 0]);
    (40..50).for_each(|id| export.batch(1, id));
    assert_eq!(export.settled(100), [100, 0, 0, 0]);

    // What is not sent when the run ends is sent by the next one.
    down(&cluster);
    (50..55).for_each(|id| export.batch(1, id));
    export.finish(100);
    assert_eq!(export.settled(50), [0, 50, 0, 0]);
    export.ends();
    up(&cluster);
    let mut export = Export::start(&cluster, 2, Some(&spool), 1 << 20);
    assert_eq!(export.began(), (Vec::new(), 50));
    export.batch(2, 0);
    // It waits behind the others, or not any more.
    let counts = export.settled(60);
    let more = if counts[1] == 10 && counts[2] == 0 { export.settled(10)[2..].iter().sum() } else { 0 };
    assert_eq!((counts[0].max(counts[1]), counts[2] + counts[3] + more), (10, 50 + counts[1]));
    export.finish(10_000);
    export.ends();
    let found = consumed(&cluster, 2 * 560);
    assert_eq!((found.len(), found.values().max()), (2 * 560, Some(&1)));
}

#[test]
fn whoever_kills_the_program_loses_nothing() {
    let cluster = cluster();
    let spool = tempfile::tempdir().expect("a directory");
    down(&cluster);
    let mut export = Export::start(&cluster, 1, Some(spool.path()), 1 << 20);
    export.began();
    export.batch(1, 0);
    export.is_stalled();
    (1..10).for_each(|id| export.batch(1, id));
    assert_eq!(export.settled(90), [0, 90, 0, 0]);
    export.kill();
    // The same run, in another process: weir sends what was not settled once more.
    let mut export = Export::start(&cluster, 1, Some(spool.path()), 1 << 20);
    let (own, earlier) = export.began();
    let expected = (1..10).map(|id| Own { id, flows: 10, is_sent: false });
    assert_eq!((own, earlier), (expected.collect(), 0));
    export.batch(1, 0);
    up(&cluster);
    // What went to the spool is sent, too.
    let [_, spooled, ..] = export.settled(100);
    export.settled(spooled);
    // It ends well, too, if weir is killed.
    drop(export.socket);
    assert!(export.child.wait().expect("it was started").success());
    assert_eq!(consumed(&cluster, 200).len(), 200);
}

#[test]
fn a_full_spool_takes_no_more_and_without_one_flows_are_lost_at_the_end() {
    let cluster = cluster();
    down(&cluster);
    let spool = tempfile::tempdir().expect("a directory");
    let mut export = Export::start(&cluster, 1, Some(spool.path()), 1000);
    export.began();
    export.batch(1, 0);
    export.is_stalled();
    (1..10).for_each(|id| export.batch(1, id));
    export.finish(100);
    // Which is not said: what was in flight comes first.
    let (mut spooled, mut lost) = (0, 0);
    for _ in 0..10 {
        match export.report() {
            Some(Report::Settled { spooled: more, lost: gone, .. }) => {
                (spooled, lost) = (spooled + more, lost + gone)
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(spooled >= 10 && spooled + lost == 100, "{spooled} + {lost}");
    export.ends();

    let mut export = Export::start(&cluster, 2, None, 0);
    export.began();
    export.batch(1, 0);
    export.finish(100);
    assert!(matches!(export.report(), Some(Report::Settled { id: 0, spooled: 0, lost: 10, .. })));
    export.ends();

    // Somebody else's directory.
    let mut export = Export::start(&cluster, 3, Some(Path::new("/proc/spool")), 1 << 20);
    let told = export.report();
    assert!(
        matches!(&told, Some(Report::Failed(why)) if why.starts_with("cannot use the spool /proc/spool: ")),
        "{told:?}"
    );
    assert_eq!(export.report(), None);
    assert!(!export.child.wait().expect("it was started").success());
}
