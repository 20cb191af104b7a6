//! Figures as SVG: bars where nothing varies but who is measured, lines along an axis.

use std::error::Error;

use plotters::coord::Shift;
use plotters::coord::ranged1d::SegmentValue;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::text::{estimate, number};
use super::{Axis, Estimate, Outcome, Role};
use crate::picture::{LIMITS, OURS, PEERS};

const WIDTH: u32 = 960;
/// Pixels of a bar, and of what is around all of them.
const ROW: u32 = 24;
const FRAME: u32 = 80;
/// Pixels of the names beside bars.
const NAMES: u32 = 330;
/// Pixels of lines' field, and of a line of their legend.
const FIELD: u32 = 420;
const LEGEND: i32 = 18;

const MODELS: RGBColor = RGBColor(0x6a, 0x3d, 0x9a);
/// Lines of one role differ by these, in turn.
const SHADES: [f64; 4] = [1.0, 0.62, 0.4, 0.25];

type Drawn<T> = Result<T, Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A bar: its name, what it is, and its length.
pub(crate) struct Row {
    pub(crate) title: String,
    pub(crate) role: Role,
    pub(crate) length: Estimate,
}

/// A line, or the points of one that was not connected.
struct Line {
    title: String,
    role: Role,
    points: Vec<(f64, Estimate)>,
}

/// The figures of an experiment by its first measure, each with a caption. None if nothing was measured.
pub(crate) fn figures(outcome: &Outcome) -> Drawn<Vec<String>> {
    // Values of many kinds have no scale in common.
    let measure = outcome.about.measures.first().filter(|measure| !measure.unit.is_empty());
    let Some(measure) = measure else { return Ok(Vec::new()) };
    let places = outcome.places();
    let title = format!("{}, {}", measure.title, measure.unit);
    match &outcome.about.axis {
        Some(axis) if outcome.is_curve() => {
            let lines: Vec<Line> = lines(outcome, &measure.name);
            if lines.is_empty() { Ok(Vec::new()) } else { Ok(vec![draw_lines(&title, axis, &lines)?]) }
        }
        axis => {
            let all: Vec<(Option<f64>, Vec<Row>)> =
                places.into_iter().map(|at| (at, rows(outcome, &measure.name, at))).collect();
            let lengths = all.iter().flat_map(|(_, rows)| rows.iter().map(|row| row.length.high));
            let longest = lengths.fold(0.0, f64::max);
            let shown = all.iter().filter(|(_, rows)| !rows.is_empty());
            shown
                .map(|(at, rows)| {
                    let place =
                        at.zip(axis.as_ref()).map(|(at, axis)| format!(" ({} {})", number(at), axis.unit));
                    draw_bars(&format!("{title}{}", place.unwrap_or_default()), rows, longest)
                })
                .collect()
        }
    }
}

fn rows(outcome: &Outcome, measure: &str, at: Option<f64>) -> Vec<Row> {
    let series = outcome.about.series.iter();
    series
        .filter_map(|series| {
            let length = estimate(outcome, &series.name, measure, at)?;
            Some(Row { title: series.title.clone(), role: series.role, length })
        })
        .collect()
}

fn lines(outcome: &Outcome, measure: &str) -> Vec<Line> {
    let places: Vec<f64> = outcome.places().into_iter().flatten().collect();
    let line = |series: &super::Series| {
        let at = |at: &f64| Some((*at, estimate(outcome, &series.name, measure, Some(*at))?));
        Line {
            title: series.title.clone(),
            role: series.role,
            points: places.iter().filter_map(at).collect(),
        }
    };
    outcome.about.series.iter().map(line).filter(|line| !line.points.is_empty()).collect()
}

/// The median as a bar, where it lies as a line on that.
pub(crate) fn draw_bars(caption: &str, rows: &[Row], longest: f64) -> Drawn<String> {
    let mut svg = String::new();
    {
        let height = u32::try_from(rows.len())? * ROW + FRAME;
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE)?;
        bars(&root, caption, rows, if longest > 0.0 { longest } else { 1.0 })?;
        root.present()?;
    }
    Ok(svg)
}

fn bars(area: &Area<'_>, caption: &str, rows: &[Row], longest: f64) -> Drawn<()> {
    // The first at the top.
    let top = i32::try_from(rows.len())? - 1;
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 17))
        .margin(8)
        .x_label_area_size(28)
        .y_label_area_size(NAMES)
        .build_cartesian_2d(0.0..longest * 1.15, (0..top).into_segmented())?;
    let title = |value: &SegmentValue<i32>| match value {
        SegmentValue::CenterOf(at) | SegmentValue::Exact(at) => {
            let row = usize::try_from(top - at).ok().and_then(|index| rows.get(index));
            row.map_or(String::new(), |row| row.title.clone())
        }
        SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .y_labels(rows.len())
        .y_label_formatter(&title)
        .label_style(("sans-serif", 13))
        .draw()?;
    let style = ("sans-serif", 12).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
    for (at, row) in (0..=top).rev().zip(rows) {
        let Estimate { median, low, high, .. } = row.length;
        let middle = || SegmentValue::CenterOf(at);
        let ends = [(0.0, SegmentValue::Exact(at)), (median, SegmentValue::Exact(at + 1))];
        let mut bar = Rectangle::new(ends, colour(row.role).filled());
        bar.set_margin(4, 4, 0, 0);
        chart.draw_series([bar])?;
        chart.draw_series(LineSeries::new([(low, middle()), (high, middle())], BLACK.stroke_width(2)))?;
        let label = Text::new(number(median), (high + longest * 0.01, middle()), style.clone());
        chart.draw_series([label])?;
    }
    Ok(())
}

fn draw_lines(title: &str, axis: &Axis, lines: &[Line]) -> Drawn<String> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let (first, last) =
        points().fold((f64::MAX, f64::MIN), |(low, high), (x, _)| (low.min(*x), high.max(*x)));
    let highest = points().map(|(_, estimate)| estimate.high).fold(0.0, f64::max);
    let highest = if highest > 0.0 { highest * 1.08 } else { 1.0 };
    let mut svg = String::new();
    {
        let below = u32::try_from(LEGEND)? * u32::try_from(lines.len())? + 16;
        let root = SVGBackend::with_string(&mut svg, (WIDTH, FIELD + below)).into_drawing_area();
        root.fill(&WHITE)?;
        let (field, legend) = root.split_vertically(FIELD);
        let mut builder = ChartBuilder::on(&field);
        builder
            .caption(title, ("sans-serif", 17))
            .margin(10)
            .margin_right(40)
            .x_label_area_size(44)
            .y_label_area_size(64);
        let about = format!("{}, {}", axis.title, axis.unit);
        if axis.logarithmic {
            let range = (first.max(f64::MIN_POSITIVE)..last.max(first * 1.01)).log_scale();
            draw_on(builder.build_cartesian_2d(range, 0.0..highest)?, &about, lines)?;
        } else {
            draw_on(builder.build_cartesian_2d(first..last.max(first + 1.0), 0.0..highest)?, &about, lines)?;
        }
        names(&legend, lines)?;
        root.present()?;
    }
    Ok(svg)
}

type Chart<'a, 'b, X> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, plotters::coord::types::RangedCoordf64>>;

fn draw_on<X>(mut chart: Chart<'_, '_, X>, about: &str, lines: &[Line]) -> Drawn<()>
where
    X: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(about)
        .x_label_formatter(&|value| number(*value))
        .label_style(("sans-serif", 13))
        .draw()?;
    for (index, line) in lines.iter().enumerate() {
        let style = stroke(lines, index);
        let middle = line.points.iter().map(|(x, estimate)| (*x, estimate.median));
        // What arithmetic expects is drawn with dashes, so that measured points beside it can be seen.
        if line.role == Role::Model {
            chart.draw_series(DashedLineSeries::new(middle, 6, 4, style))?;
            continue;
        }
        chart.draw_series(LineSeries::new(middle.clone(), style))?;
        chart.draw_series(middle.map(|point| Circle::new(point, 3, style.filled())))?;
        for (x, Estimate { low, high, .. }) in &line.points {
            chart.draw_series(LineSeries::new([(*x, *low), (*x, *high)], style))?;
        }
    }
    Ok(())
}

/// Which line is whose.
fn names(area: &Area<'_>, lines: &[Line]) -> Drawn<()> {
    let style = ("sans-serif", 13).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
    for (index, line) in (0..).zip(lines) {
        let y = 8 + index * LEGEND;
        let stroke = stroke(lines, usize::try_from(index)?);
        area.draw(&PathElement::new([(64, y), (100, y)], stroke))?;
        area.draw_text(&line.title, &style, (110, y))?;
    }
    Ok(())
}

/// Lines of one role have one colour, in shades.
fn stroke(lines: &[Line], index: usize) -> ShapeStyle {
    let role = lines[index].role;
    let before = lines[..index].iter().filter(|line| line.role == role).count();
    colour(role).mix(SHADES[before % SHADES.len()]).stroke_width(2)
}

fn colour(role: Role) -> RGBColor {
    match role {
        Role::Ours => OURS,
        Role::Peer => PEERS,
        Role::Limit => LIMITS,
        Role::Model => MODELS,
    }
}
