//! Figures as SVG: bars where only the contestant varies, lines along an axis.

use std::error::Error;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, SegmentValue, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::digest::Digest;
use super::text::{amount, axis_title, number};
use super::{Axis, Estimate, Published, Role};

const WIDTH: u32 = 960;
/// Pixels of a bar, and of what is around all of them.
const ROW: u32 = 24;
const FRAME: u32 = 80;
/// Pixels of the names beside bars.
const NAMES: u32 = 330;
/// Pixels of lines' field, and of a line of their legend.
const FIELD: u32 = 420;
const LEGEND: i32 = 18;
/// Ratio of the highest value to the lowest that calls for a logarithmic scale.
const FAR: f64 = 100.0;
/// Pixels of a line below a figure.
const NOTE: u32 = 18;

/// The greatest value that is drawn.
const MOST: f64 = 1e100;

const OURS: RGBColor = RGBColor(0x1f, 0x77, 0xb4);
const LIMITS: RGBColor = RGBColor(0x9a, 0x9a, 0x9a);
const PEERS: RGBColor = RGBColor(0xd9, 0x8a, 0x2b);
const MODELS: RGBColor = RGBColor(0x6a, 0x3d, 0x9a);
/// Lines of one role differ by these, in turn.
const SHADES: [f64; 6] = [1.0, 0.74, 0.55, 0.41, 0.3, 0.21];

pub(crate) type Drawn<T> = Result<T, Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// One figure of an experiment.
pub(crate) enum Figure {
    /// `longest`: what all figures of the experiment have room for.
    Bars {
        caption: String,
        rows: Vec<Row>,
        longest: f64,
    },
    Lines {
        caption: String,
        axis: Axis,
        lines: Vec<Line>,
    },
}

/// A bar: its name, what it is, and its length.
pub(crate) struct Row {
    title: String,
    role: Role,
    length: Estimate,
}

/// A line, or the points of one that was not connected.
pub(crate) struct Line {
    title: String,
    role: Role,
    points: Vec<(f64, Estimate)>,
}

/// The figures of an experiment, by its first measure. None if nothing was measured.
pub(crate) fn figures(digest: &Digest) -> Vec<Figure> {
    // Values of many kinds have no scale in common.
    let measure = digest.about.measures.first().filter(|measure| !measure.unit.is_empty());
    let Some(measure) = measure else { return Vec::new() };
    let caption = format!("{}, {}", measure.title, measure.unit);
    match &digest.about.axis {
        Some(axis) if digest.is_curve() => {
            let (axis, lines) = (axis.clone(), lines(digest, &measure.name));
            if lines.is_empty() { Vec::new() } else { vec![Figure::Lines { caption, axis, lines }] }
        }
        axis => {
            let all: Vec<(Option<f64>, Vec<Row>)> =
                digest.places().into_iter().map(|at| (at, rows(digest, &measure.name, at))).collect();
            let lengths = all.iter().flat_map(|(_, rows)| rows.iter().map(|row| row.length.high));
            let longest = lengths.fold(0.0, f64::max);
            let shown = all.into_iter().filter(|(_, rows)| !rows.is_empty());
            shown
                .map(|(at, rows)| {
                    let place =
                        at.zip(axis.as_ref()).map(|(at, axis)| format!(" ({})", amount(at, &axis.unit)));
                    Figure::Bars { caption: caption.clone() + &place.unwrap_or_default(), rows, longest }
                })
                .collect()
        }
    }
}

/// The value to draw; not what no axis can hold, as in a damaged file.
fn length(digest: &Digest, series: &str, measure: &str, at: Option<f64>) -> Option<Estimate> {
    let estimate = digest.estimate(series, measure, at)?;
    let Estimate { median, low, high, .. } = estimate;
    let mut values = [median, low, high].into_iter().chain(at);
    values.all(|value| value.abs() < MOST).then_some(estimate)
}

fn rows(digest: &Digest, measure: &str, at: Option<f64>) -> Vec<Row> {
    let series = digest.about.series.iter();
    series
        .filter_map(|series| {
            let length = length(digest, &series.name, measure, at)?;
            Some(Row { title: series.title.clone(), role: series.role, length })
        })
        .collect()
}

fn lines(digest: &Digest, measure: &str) -> Vec<Line> {
    let places: Vec<f64> = digest.places().into_iter().flatten().collect();
    let line = |series: &super::Series| {
        let at = |at: &f64| Some((*at, length(digest, &series.name, measure, Some(*at))?));
        Line {
            title: series.title.clone(),
            role: series.role,
            points: places.iter().filter_map(at).collect(),
        }
    };
    digest.about.series.iter().map(line).filter(|line| !line.points.is_empty()).collect()
}

impl Figure {
    /// Values of others, as bars.
    pub(crate) fn published(caption: String, values: &[&Published]) -> Self {
        let row = |value: &&Published| {
            let length =
                Estimate { median: value.value, low: value.value, high: value.value, confidence: 0.0 };
            Row { title: value.series.clone(), role: Role::Limit, length }
        };
        let longest = values.iter().map(|value| value.value).fold(0.0, f64::max);
        Self::Bars { caption, rows: values.iter().map(row).collect(), longest }
    }

    /// A figure with only a caption.
    pub(crate) fn empty(caption: String) -> Self {
        Self::Bars { caption, rows: Vec::new(), longest: 0.0 }
    }

    /// Draws it as SVG, with `notes` below, a line each.
    pub(crate) fn svg(&self, notes: &[String]) -> Drawn<String> {
        let height = self.height()?;
        let below = if notes.is_empty() { 0 } else { NOTE * (u32::try_from(notes.len())? + 1) };
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (WIDTH, height + below)).into_drawing_area();
            root.fill(&WHITE)?;
            let (field, below) = root.split_vertically(height);
            match self {
                Self::Bars { caption, rows, longest } => {
                    bars(&field, caption, rows, if *longest > 0.0 { *longest } else { 1.0 })?;
                }
                Self::Lines { caption, axis, lines } => draw_lines(&field, caption, axis, lines)?,
            }
            let style = ("sans-serif", 12).into_text_style(&below).pos(Pos::new(HPos::Left, VPos::Center));
            for (y, note) in (i32::try_from(NOTE / 2)?..).step_by(usize::try_from(NOTE)?).zip(notes) {
                below.draw_text(note, &style, (16, y))?;
            }
            root.present()?;
        }
        Ok(svg)
    }

    fn height(&self) -> Drawn<u32> {
        Ok(match self {
            Self::Bars { rows, .. } => u32::try_from(rows.len())? * ROW + FRAME,
            Self::Lines { lines, .. } => FIELD + u32::try_from(LEGEND)? * u32::try_from(lines.len())? + 16,
        })
    }

    /// What its colours mean.
    pub(crate) fn legend(&self) -> String {
        let (roles, interval): (Vec<Role>, _) = match self {
            Self::Bars { rows, .. } => (rows.iter().map(|row| row.role).collect(), "Black"),
            Self::Lines { lines, .. } => (lines.iter().map(|line| line.role).collect(), "Vertical lines"),
        };
        let mut legend = String::new();
        for (role, meaning) in [
            (Role::Ours, "Blue: weir. "),
            (Role::Peer, "Orange: others. "),
            (Role::Limit, "Grey: limits of the machine. "),
            (Role::Model, "Violet: arithmetic and simulation. "),
        ] {
            if roles.contains(&role) {
                legend.push_str(meaning);
            }
        }
        legend + interval + ": the interval of the median."
    }
}

fn bars(area: &Area<'_>, caption: &str, rows: &[Row], longest: f64) -> Drawn<()> {
    // The first at the top.
    let top = (i32::try_from(rows.len())? - 1).max(0);
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

fn draw_lines(area: &Area<'_>, caption: &str, axis: &Axis, lines: &[Line]) -> Drawn<()> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let (first, last) =
        points().fold((f64::MAX, f64::MIN), |(low, high), (x, _)| (low.min(*x), high.max(*x)));
    let (field, legend) = area.split_vertically(FIELD);
    let mut builder = ChartBuilder::on(&field);
    builder
        .caption(caption, ("sans-serif", 17))
        .margin(10)
        .margin_right(40)
        .x_label_area_size(44)
        .y_label_area_size(64);
    let about = axis_title(axis);
    if axis.logarithmic {
        let range = (first.max(f64::MIN_POSITIVE)..last.max(first * 1.01)).log_scale();
        draw_along(&mut builder, range, &about, lines)?;
    } else {
        draw_along(&mut builder, first..last.max(first + 1.0), &about, lines)?;
    }
    names(&legend, lines)
}

/// Values far apart, such as a limit far beyond all others, are drawn on a logarithmic scale.
fn draw_along<X>(
    builder: &mut ChartBuilder<'_, '_, SVGBackend<'_>>,
    x: X,
    about: &str,
    lines: &[Line],
) -> Drawn<()>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let estimates = || lines.iter().flat_map(|line| &line.points).map(|(_, estimate)| estimate);
    let lowest = estimates().map(|estimate| estimate.low).fold(f64::MAX, f64::min);
    let highest = estimates().map(|estimate| estimate.high).fold(0.0, f64::max);
    if lowest > 0.0 && highest > FAR * lowest {
        let range = (lowest / 1.2..highest * 1.2).log_scale();
        return draw_on(builder.build_cartesian_2d(x, range)?, about, lines);
    }
    let highest = if highest > 0.0 { highest * 1.08 } else { 1.0 };
    draw_on(builder.build_cartesian_2d(x, 0.0..highest)?, about, lines)
}

type Chart<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;

fn draw_on<X, Y>(mut chart: Chart<'_, '_, X, Y>, about: &str, lines: &[Line]) -> Drawn<()>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(about)
        .x_label_formatter(&|value| number(*value))
        .y_label_formatter(&|value| number(*value))
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
