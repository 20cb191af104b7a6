//! Counting by size and by gap. tcpdump, which captures the same traffic, is the judge of sizes.

use weir::statistics::Bucket;

use super::*;

fn sum(buckets: &[Bucket]) -> Counts {
    buckets.iter().map(|bucket| bucket.counts).sum()
}

#[root_test]
fn root_sizes_are_those_of_tcpdump() {
    for source in [SourceChoice::Tc, SourceChoice::Xdp] {
        let directory = TempDir::new().expect("a directory");
        let files = ["in.pcap", "out.pcap"].map(|name| directory.path().join(name));
        let network = Network::new(Veth::default().mtu(12_000)).expect("a private network");
        // Each limit, and one more and one less. What is shorter than a header cannot be sent.
        let limits = [64, 65, 128, 256, 512, 1024, 1519, 2048, 4096, 9217, 11_000];
        let sizes = limits.iter().flat_map(|size| [size - 1, *size, size + 1]);
        let frames: Vec<Vec<u8>> = sizes
            .map(|size| {
                let mut frame = ethernet(None, 0x88b5, &[]);
                frame.resize(size - 4, 0);
                frame
            })
            .collect();
        let builder = Statistics::on("rx0").source(source).sizes(true);
        let mut statistics = network.rx().run(|| builder.start().expect("it counts"));
        let dumps = [("in", &files[0]), ("out", &files[1])]
            .map(|(direction, file)| tcpdump(&network, direction, frames.len(), file));
        send(&network.pair().tx, &frames);
        send(&network.pair().rx, &frames);
        dumps.into_iter().for_each(end);
        statistics.stop().expect("it stops");
        let reading = statistics.read().expect("counters");
        assert_eq!(reading.sizes.len(), 11);
        for Bucket { from, to, counts, .. } in &reading.sizes {
            // Without checksum; `less` and `greater` include their limit.
            let least = from.saturating_sub(4);
            let expression = match to.checked_add(1) {
                Some(_) => format!("greater {least} and less {}", to - 4),
                None => format!("greater {least}"),
            };
            let received = found(&files[0], &expression);
            assert_eq!(counts.received, received, "{source:?}, {from} to {to}");
            assert!(received.packets > 0, "{from} to {to}");
            if statistics.info().source == SourceKind::Tc {
                assert_eq!(counts.sent, found(&files[1], &expression), "{from} to {to}");
            }
        }
        assert_eq!(sum(&reading.sizes), reading.total);
        assert!(reading.gaps.is_empty());
    }
}

#[root_test]
fn root_gaps_and_first_packets_add_up() {
    let network = Network::new(Veth::default()).expect("a private network");
    for source in [SourceChoice::Tc, SourceChoice::Xdp] {
        let builder =
            Statistics::on("rx0").source(source).filter("dns", Filter::new("udp port 53")).gaps(true);
        let began = Instant::now();
        let mut statistics = network.rx().run(|| builder.start().expect("it counts"));
        let pause = Duration::from_millis(5);
        for _ in 0..10 {
            send(&network.pair().tx, &mixture(20));
            std::thread::sleep(pause);
        }
        wait_for(&mut statistics, 1400);
        statistics.stop().expect("it stops");
        let (reading, longest) = (statistics.read().expect("counters"), began.elapsed().as_nanos());
        let all = reading.filters[0].counts;
        assert_eq!(all.received.packets, 400);
        assert_eq!(sum(&reading.gaps) + reading.first, all);
        assert!((1..=256).contains(&reading.first.received.packets), "{:?}", reading.first);
        assert!(
            reading.gaps.iter().all(|gap| gap.counts.total().packets == 0 || u128::from(gap.from) < longest)
        );
        // No pause is shorter than asked for; behind each is a gap, or the first packet of another CPU.
        let long = reading.gaps.iter().filter(|gap| u128::from(gap.to) >= pause.as_nanos());
        let long: u64 = long.map(|gap| gap.counts.received.packets).sum();
        assert!(long + reading.first.received.packets >= 10, "{:?}", reading.gaps);
        assert!(long < 400, "packets of a burst are closer");
    }
}
