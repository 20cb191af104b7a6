//! The rates as a picture: a field for each size of frames, a bar for each contestant, one scale for all; above them what the
//! colours mean, below them what was measured where and when.

use std::error::Error;

use plotters::coord::ranged1d::SegmentValue;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::report::Report;
use super::spread::Spread;

const WIDTH: u32 = 1000;
/// Pixels of a bar, and of what is around the bars of a field.
const ROW: u32 = 26;
const FRAME: u32 = 90;
/// Pixels of a line of text above or below the fields, and of a sample of a colour.
const LINE: i32 = 24;
const SAMPLE: i32 = 14;
/// Pixels of the longest name of a contestant.
const NAMES: u32 = 290;

pub(crate) const OURS: RGBColor = RGBColor(0x1f, 0x77, 0xb4);
pub(crate) const LIMITS: RGBColor = RGBColor(0x9a, 0x9a, 0x9a);
pub(crate) const PEERS: RGBColor = RGBColor(0xd9, 0x8a, 0x2b);
const LOSSY: RGBColor = RGBColor(0xc0, 0x39, 0x2b);

/// Draws it as SVG: the median as a bar, the range as a line on it. Red where packets were lost.
pub(super) fn draw(report: &Report) -> Result<String, Box<dyn Error>> {
    let sizes = report.sizes();
    let rows = u32::try_from(report.contestants.len())?;
    let fields = u32::try_from(sizes.len())?.max(1);
    let mut svg = String::new();
    {
        let text = u32::try_from(2 * LINE)?;
        let height = fields * (rows * ROW + FRAME);
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height + 2 * text)).into_drawing_area();
        root.fill(&WHITE)?;
        let (above, rest) = root.split_vertically(text);
        let (middle, below) = rest.split_vertically(height);
        legend(&above)?;
        let longest = longest(report, &sizes);
        for (area, &size) in middle.split_evenly((sizes.len().max(1), 1)).iter().zip(&sizes) {
            field(report, size, longest, area)?;
        }
        origin(report, &below)?;
        root.present()?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// What the colours mean.
fn legend(area: &Area<'_>) -> Result<(), Box<dyn Error>> {
    let meanings = [
        (OURS, "weir"),
        (PEERS, "other programs"),
        (LIMITS, "limits of this machine: no capture"),
        (LOSSY, "some packets were lost"),
    ];
    let style = ("sans-serif", 14).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
    let mut at = LINE;
    for (colour, meaning) in meanings {
        let corners = [(at, LINE - SAMPLE / 2), (at + SAMPLE, LINE + SAMPLE / 2)];
        area.draw(&Rectangle::new(corners, colour.filled()))?;
        area.draw_text(meaning, &style, (at + SAMPLE + 6, LINE))?;
        let (width, _) = area.estimate_text_size(meaning, &style)?;
        at += SAMPLE + i32::try_from(width)? + 2 * LINE;
    }
    Ok(())
}

/// What was measured where and when.
fn origin(report: &Report, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
    let style = ("sans-serif", 13).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw_text(&format!("{}, {}", report.machine.date(), report.machine), &style, (LINE, LINE / 2))?;
    let how = "Private network over veth; one processor generates, receives and stores. Modes: see docs/performance.md";
    area.draw_text(how, &style, (LINE, LINE + LINE / 2))?;
    Ok(())
}

/// The highest rate of all, in million packets a second.
fn longest(report: &Report, sizes: &[usize]) -> f64 {
    let rows = sizes.iter().flat_map(|&size| {
        report.contestants.iter().filter_map(move |about| Row::of(report, about.name, size))
    });
    rows.map(|row| row.rate.max).fold(1.0, f64::max)
}

fn field(report: &Report, size: usize, longest: f64, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
    let rows: Vec<(&str, Option<Row>)> =
        report.contestants.iter().map(|about| (about.title, Row::of(report, about.name, size))).collect();
    // The first at the top.
    let top = i32::try_from(rows.len())? - 1;

    let rounds =
        if report.rounds == 1 { "one round".to_owned() } else { format!("{} rounds", report.rounds) };
    let caption = format!("{size}-byte frames: million packets a second, median and range of {rounds}");
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(NAMES)
        .build_cartesian_2d(0.0..longest * 1.12, (0..top).into_segmented())?;
    let title = |value: &SegmentValue<i32>| match value {
        SegmentValue::CenterOf(at) | SegmentValue::Exact(at) => {
            let index = usize::try_from(top - at).unwrap_or(usize::MAX);
            rows.get(index).map_or(String::new(), |(title, _)| (*title).to_owned())
        }
        SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .y_labels(rows.len())
        .y_label_formatter(&title)
        .label_style(("sans-serif", 14))
        .draw()?;

    let small = ("sans-serif", 13).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
    for (at, (_, row)) in (0..=top).rev().zip(&rows) {
        let middle = || SegmentValue::CenterOf(at);
        let Some(Row { rate, colour, lost }) = row else {
            chart.draw_series([Text::new("  not measured", (0.0, middle()), small.color(&LOSSY))])?;
            continue;
        };
        let ends = [(0.0, SegmentValue::Exact(at)), (rate.median, SegmentValue::Exact(at + 1))];
        let mut bar = Rectangle::new(ends, colour.filled());
        bar.set_margin(4, 4, 0, 0);
        chart.draw_series([bar])?;
        chart.draw_series(LineSeries::new(
            [(rate.min, middle()), (rate.max, middle())],
            BLACK.stroke_width(2),
        ))?;
        let label = format!("{:.2}{}", rate.median, if *lost { ", with loss" } else { "" });
        let label = Text::new(label, (rate.max + longest * 0.01, middle()), small.clone());
        chart.draw_series([label])?;
    }
    Ok(())
}

/// One bar, in million packets a second.
struct Row {
    rate: Spread,
    colour: RGBColor,
    lost: bool,
}

impl Row {
    fn of(report: &Report, contestant: &str, size: usize) -> Option<Self> {
        let turns = report.turns(contestant, size);
        let rate = Spread::of(turns.iter().map(|sample| sample.rate))?.times(1e-6);
        let lost = turns.iter().any(|sample| sample.lost > 0);
        let colour = match contestant {
            _ if lost => LOSSY,
            name if name.starts_with("weir") => OURS,
            "limit" | "limit-write" | "limit-pass" | "stack" => LIMITS,
            _ => PEERS,
        };
        Some(Self { rate, colour, lost })
    }
}
