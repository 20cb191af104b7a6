//! The table of the busiest flows: its columns, as many as there is room for, and how fast flows are now.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use weir::flows::{Counts, Endpoint, Flow, Rank};
use weir_render::flows::{label, label_within};

use super::losses;
use crate::columns::{Column, aligned, chosen};
use crate::{protocol, units};

/// The columns behind the label. `>`: from who began.
const COLUMNS: [Column; 9] = [
    column("now", 6, 1),
    column("bit/s", 6, 2),
    column("bytes", 8, 0),
    column("packets", 7, 3),
    column("> bytes", 8, 7),
    column("< bytes", 8, 6),
    column("again", 5, 5),
    column("server", 7, 4),
    column("seconds", 7, 8),
];
/// The number of the first one, which a single table does not have.
const NOW: usize = 0;
/// Characters of a label that columns leave it, if it needs them: two addresses of IPv4 with ports, and the protocol.
const LABEL: usize = 46;

const fn column(title: &'static str, width: usize, rank: u8) -> Column {
    Column { title, width, rank }
}

/// What the flows of the last table had then, to see how fast they are now.
#[derive(Debug)]
pub(super) struct Growth {
    /// The time of the last table, by both clocks.
    at: (Instant, u64),
    bytes: HashMap<Identity, u64>,
}

/// What stays the same of a flow.
type Identity = (u64, u16, u8, Option<u16>, Option<u32>, [Endpoint; 2]);

fn identity(flow: &Flow) -> Identity {
    let mut ends = flow.sides.map(|side| side.end);
    // A later packet can tell that the other side began.
    ends.sort_unstable();
    (flow.first, flow.interface, flow.protocol, flow.vlan, flow.tunnel, ends)
}

impl Growth {
    /// Returns what is known before the first table.
    pub(super) fn start() -> Self {
        Self { at: (Instant::now(), losses::now()), bytes: HashMap::new() }
    }

    /// Returns the bits per second of each flow since the last table, and takes these flows for the next one. `None`: it was not in
    /// the last table, and is older.
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    pub(super) fn rates(&mut self, flows: &[Flow]) -> Vec<Option<f64>> {
        let (then, began) = std::mem::replace(&mut self.at, (Instant::now(), losses::now()));
        let seconds = self.at.0.duration_since(then).as_secs_f64().max(1e-3);
        let before = |flow: &Flow| match self.bytes.get(&identity(flow)) {
            Some(bytes) => Some(*bytes),
            None => (flow.first >= began).then_some(0),
        };
        let rate = |flow: &Flow| Some(flow.bytes().saturating_sub(before(flow)?) as f64 * 8.0 / seconds);
        let rates = flows.iter().map(rate).collect();
        self.bytes = flows.iter().map(|flow| (identity(flow), flow.bytes())).collect();
        rates
    }
}

/// Returns the head, a row for each flow, and one for all, in lines of at most `most` characters if the important columns fit. `now`: how fast
/// each flow is; `None`: nobody knows of any.
pub(super) fn table(
    flows: &[Flow],
    now: Option<&[Option<f64>]>,
    counts: &Counts,
    rank: Rank,
    most: usize,
) -> Vec<String> {
    let head = match rank {
        Rank::Bytes => "flows by bytes",
        Rank::Packets => "flows by packets",
        Rank::Rate => "flows by rate",
        Rank::Retransmissions => "flows by retransmissions",
    };
    let all = counts.flows + counts.all_ended();
    let name = if all == 1 {
        "(1 flow in all)".to_owned()
    } else {
        format!("({} flows in all)", units::grouped(all))
    };
    let mut sums = vec![String::new(); COLUMNS.len()];
    sums[2] = units::bytes(counts.bytes);
    sums[3] = units::grouped(counts.packets - counts.not_ip - counts.cut);

    let first = if now.is_some() { NOW } else { NOW + 1 };
    let rates = now.map(|now| now.iter().copied()).into_iter().flatten().chain(std::iter::repeat(None));
    let cells: Vec<Vec<String>> =
        flows.iter().zip(rates).map(|(flow, rate)| cells(flow, rate)).chain([sums]).collect();
    let cells: Vec<Vec<String>> = cells.into_iter().map(|mut row| row.split_off(first)).collect();
    let needed = flows.iter().map(|flow| label(flow, &protocol::shown(flow.protocol)).chars().count());
    let needed = needed.chain([head.len(), name.len()]).max().unwrap_or_default();
    let columns = by_rank(rank);
    let columns = &columns[first..];
    let (kept, width) = chosen(columns, &cells, (LABEL, needed), most);

    let labels =
        flows.iter().map(|flow| label_within(flow, &protocol::shown(flow.protocol), width)).chain([name]);
    let kept_of = |row: &Vec<String>| kept.iter().map(|(index, _)| row[*index].clone()).collect();
    let rows: Vec<_> = labels.zip(cells.iter().map(kept_of)).collect();
    let columns: Vec<_> = kept.iter().map(|(index, width)| (columns[*index].title, *width)).collect();
    aligned(head, &columns, &rows, most)
}

/// Returns the columns; the one that flows are ranked by is always there.
fn by_rank(rank: Rank) -> [Column; COLUMNS.len()] {
    let mut columns = COLUMNS;
    let title = match rank {
        Rank::Bytes => "bytes",
        Rank::Packets => "packets",
        Rank::Rate => "bit/s",
        Rank::Retransmissions => "again",
    };
    for column in &mut columns {
        column.rank = if column.title == title { 0 } else { column.rank + 1 };
    }
    columns
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn cells(flow: &Flow, now: Option<f64>) -> Vec<String> {
    let seconds = (flow.last - flow.first) as f64 / 1e9;
    let again = flow.tcp.map(|_| units::grouped(flow.rank(Rank::Retransmissions))).unwrap_or_default();
    let server = flow.tcp.and_then(|tcp| tcp.handshake[0]);
    vec![
        now.map(rate).unwrap_or_default(),
        // A packet alone has no rate.
        if seconds > 0.0 { rate(flow.rate() as f64) } else { String::new() },
        units::bytes(flow.bytes()),
        units::grouped(flow.packets()),
        units::bytes(flow.sides[0].bytes),
        units::bytes(flow.sides[1].bytes),
        again,
        server.map(|time| units::brief(Duration::from_micros(time.into()))).unwrap_or_default(),
        format!("{seconds:.1}"),
    ]
}

/// Returns bits per second: `437 M`.
fn rate(rate: f64) -> String {
    units::scaled(rate.round()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use weir::flows::{EndReason, Side, Tcp};

    use super::*;

    fn flow(bytes: u64, handshake: Option<u32>) -> Flow {
        let side = |last: u16, port| Side {
            end: Endpoint {
                address: std::net::Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 3, 4, 5, last).into(),
                port,
            },
            mac: None,
            packets: 2000,
            bytes,
            lengths: [40, 1500],
            ttls: [63, 64],
            tos: 8,
        };
        Flow {
            interface: 0,
            sides: [side(0x1111, 40_000), side(0x2222, 443)],
            protocol: 6,
            vlan: None,
            tunnel: None,
            first: 1_700_000_000_000_000_000,
            last: 1_700_000_002_500_000_000,
            lost: 0,
            reason: EndReason::Idle,
            icmp: None,
            tcp: Some(Tcp {
                flags: [2, 0x12],
                initial_sequences: [None; 2],
                retransmissions: [1, 0],
                zero_windows: [0; 2],
                handshake: [handshake, None],
            }),
            names: None,
        }
    }

    #[test]
    fn the_table_fits_and_important_columns_stay() {
        let flows = [flow(1 << 30, Some(87)), flow(1 << 20, None), flow(1000, Some(1_500_000))];
        let now = [Some(1e9), None, Some(0.0)];
        let lines = |rank, most| table(&flows, Some(&now), &Counts::default(), rank, most);
        for rank in [Rank::Bytes, Rank::Packets, Rank::Rate, Rank::Retransmissions] {
            for most in 79..200 {
                let lines = lines(rank, most);
                assert!(lines.iter().all(|line| line.chars().count() <= most), "{most}: {lines:#?}");
                let by = ["bytes", "packets", "bit/s", "again"][rank as usize];
                assert!([by, "now"].iter().all(|title| lines[0].contains(title)), "{most}: {lines:#?}");
                assert!(lines[1].contains("]:40000 > [") && lines[1].contains("]:443 tcp"), "{lines:#?}");
            }
        }
        let wide = lines(Rank::Bytes, usize::MAX);
        assert!(COLUMNS.iter().all(|column| wide[0].contains(column.title)), "{}", wide[0]);
        let cells: Vec<Vec<_>> = wide.iter().map(|line| line.split("  ").map(str::trim).collect()).collect();
        assert!(cells[1].contains(&"87.0 us") && cells[1].contains(&"1.00 G"), "{cells:?}");
        assert!(cells[3].contains(&"1.5 s") && cells[3].contains(&"0"), "{cells:?}");
        let once = table(&flows, None, &Counts::default(), Rank::Bytes, usize::MAX);
        assert!(!once[0].contains("now") && once[0].contains("bit/s"), "{}", once[0]);
    }

    #[test]
    fn the_rate_of_now_is_what_was_sent_since_the_last_table() {
        let mut growth = Growth::start();
        let mut flow = flow(1000, None);
        // It was there before anybody looked.
        assert_eq!(growth.rates(std::slice::from_ref(&flow)), [None]);
        flow.sides.swap(0, 1);
        assert_eq!(growth.rates(std::slice::from_ref(&flow)), [Some(0.0)]);
        flow.sides[0].bytes += 500;
        let young = Flow { first: u64::MAX, last: u64::MAX, ..flow.clone() };
        let rates: Vec<_> = growth.rates(&[flow, young]).into_iter().flatten().collect();
        assert!(rates[0] > 0.0 && (rates[1] / rates[0] - 5.0).abs() < 1e-6, "{rates:?}");
    }
}
