//! Draws an S-curve as SVG: theory as lines, measurements as points, the threshold as a vertical line.

use hapax_core::tuning::SimulatedPoint;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The size at which the picture is shown.
const SIZE: (u32, u32) = (960, 600);
/// The picture is drawn larger by this factor. Otherwise lines would have visible steps, because plotters rounds to
/// whole dots.
const SCALE: u32 = 8;
/// Half the width of the label above the threshold. The label must stay in the picture.
const LABEL_HALF: u32 = 190;
/// The number of points of each line.
const STEPS: u32 = 400;
const PROPOSED: &str = "proposed by the bands (theory)";
const REPORTED: &str = "reported: proposed, and estimated at or above the threshold (theory)";
const CANDIDATE: RGBColor = RGBColor(0x1F, 0x5F, 0xA8);
const VERDICT: RGBColor = RGBColor(0xC2, 0x4E, 0x0F);
const THRESHOLD: RGBColor = RGBColor(0x55, 0x55, 0x55);

/// The similarities of pairs, which are drawn over an S-curve.
pub struct Bars<'a> {
    pub title: String,
    pub threshold: f64,
    /// The probability that a document of this Jaccard similarity is proposed.
    pub candidate: &'a dyn Fn(f64) -> f64,
    /// The number of pairs in each equal part of the similarities from 0 to 1.
    pub counts: &'a [u64],
}

pub struct Curve<'a> {
    pub title: String,
    pub threshold: f64,
    /// The probability that a document of this Jaccard similarity is proposed.
    pub candidate: &'a dyn Fn(f64) -> f64,
    /// The probability that a document of this Jaccard similarity is reported.
    pub verdict: &'a dyn Fn(f64) -> f64,
    /// The results of a simulation.
    pub measured: &'a [SimulatedPoint],
}

/// Returns the picture as SVG text.
pub fn draw(curve: &Curve<'_>) -> Result<String, Box<dyn std::error::Error>> {
    svg(|root| draw_on(root, curve))
}

/// Returns the picture as SVG text. The highest bar is as high as the picture.
pub fn draw_bars(bars: &Bars<'_>) -> Result<String, Box<dyn std::error::Error>> {
    svg(|root| draw_bars_on(root, bars))
}

fn svg(draw: impl FnOnce(&DrawingArea<SVGBackend<'_>, Shift>) -> Drawn) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    {
        let drawn = (SIZE.0 * SCALE, SIZE.1 * SCALE);
        let root = SVGBackend::with_string(&mut svg, drawn).into_drawing_area();
        root.fill(&WHITE)?;
        draw(&root)?;
        root.present()?;
    }
    // The size of the drawing stays in the viewBox. This changes only the size at which the picture is shown.
    let drawn = format!("width=\"{}\" height=\"{}\"", SIZE.0 * SCALE, SIZE.1 * SCALE);
    Ok(svg.replacen(&drawn, &format!("width=\"{}\" height=\"{}\"", SIZE.0, SIZE.1), 1))
}

/// Converts a length of the shown picture to dots of the drawing.
const fn dots(shown: u32) -> u32 {
    shown * SCALE
}

/// The coordinates of the drawing: similarity from left to right, probability upwards.
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw_on(root: &DrawingArea<SVGBackend<'_>, Shift>, curve: &Curve<'_>) -> Drawn {
    let mut chart = chart(root)?;
    draw_axes(&mut chart)?;
    draw_line(&mut chart, CANDIDATE, PROPOSED, curve.candidate)?;
    draw_line(&mut chart, VERDICT, REPORTED, curve.verdict)?;
    draw_measured(&mut chart, curve.measured)?;
    draw_threshold(&mut chart, curve.threshold, &[(curve.candidate, CANDIDATE), (curve.verdict, VERDICT)])?;
    let (candidate, verdict) = ((curve.candidate)(curve.threshold), (curve.verdict)(curve.threshold));
    let label = format!("threshold {}: {candidate:.3} proposed, {verdict:.3} reported", curve.threshold);
    draw_titles(&chart, root, (curve.threshold, &label), &curve.title)?;
    draw_legend(&mut chart)
}

fn draw_bars_on(root: &DrawingArea<SVGBackend<'_>, Shift>, bars: &Bars<'_>) -> Drawn {
    let mut chart = chart(root)?;
    draw_axes(&mut chart)?;
    let most = bars.counts.iter().copied().max().unwrap_or_default();
    let edge = |part: usize| part as f64 / bars.counts.len() as f64;
    let filled = bars.counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let style = VERDICT.mix(0.45).filled();
    let bar = move |(part, &count): (usize, &u64)| {
        Rectangle::new([(edge(part), 0.0), (edge(part + 1), count as f64 / most as f64)], style)
    };
    chart.draw_series(filled.map(bar))?.label(format!("pairs that were found; the highest bar has {most}")).legend(
        move |(x, y)| Rectangle::new([(x, y - dots(6) as i32), (x + dots(24) as i32, y + dots(6) as i32)], style),
    );
    draw_line(&mut chart, CANDIDATE, PROPOSED, bars.candidate)?;
    draw_threshold(&mut chart, bars.threshold, &[(bars.candidate, CANDIDATE)])?;
    let proposed = (bars.candidate)(bars.threshold);
    let label = format!("threshold {}: {proposed:.3} proposed", bars.threshold);
    draw_titles(&chart, root, (bars.threshold, &label), &bars.title)?;
    draw_legend(&mut chart)
}

fn chart<'a, 'b>(root: &DrawingArea<SVGBackend<'b>, Shift>) -> Result<Chart<'a, 'b>, Box<dyn std::error::Error>> {
    Ok(ChartBuilder::on(root)
        .margin(dots(18))
        .margin_top(dots(66))
        .margin_right(dots(44))
        .x_label_area_size(dots(48))
        .y_label_area_size(dots(64))
        .build_cartesian_2d(0.0..1.0, 0.0..1.0)?)
}

fn draw_legend<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>) -> Drawn {
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .margin(dots(14))
        .legend_area_size(dots(34))
        .label_font(("sans-serif", dots(15)))
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.25).stroke_width(dots(1)))
        .draw()?;
    Ok(())
}

fn draw_axes(chart: &mut Chart<'_, '_>) -> Drawn {
    chart
        .configure_mesh()
        .set_all_tick_mark_size(dots(5))
        .x_desc("Jaccard similarity of two documents")
        .y_desc("probability")
        .x_labels(11)
        .y_labels(11)
        .x_label_formatter(&|value| format!("{value:.1}"))
        .y_label_formatter(&|value| format!("{value:.1}"))
        .label_style(("sans-serif", dots(15)))
        .axis_desc_style(("sans-serif", dots(17)))
        .axis_style(BLACK.stroke_width(dots(1)))
        .bold_line_style(BLACK.mix(0.14).stroke_width(dots(1)))
        .light_line_style(TRANSPARENT)
        .draw()?;
    Ok(())
}

fn draw_line(chart: &mut Chart<'_, '_>, colour: RGBColor, label: &str, of: &dyn Fn(f64) -> f64) -> Drawn {
    let similarities = (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS));
    let thick = colour.stroke_width(dots(5) / 2);
    chart
        .draw_series(LineSeries::new(similarities.map(|jaccard| (jaccard, of(jaccard))), thick))?
        .label(label)
        .legend(move |(x, y)| PathElement::new([(x, y), (x + dots(24) as i32, y)], thick));
    Ok(())
}

fn draw_measured(chart: &mut Chart<'_, '_>, measured: &[SimulatedPoint]) -> Drawn {
    if measured.is_empty() {
        return Ok(());
    }
    let points = |colour: RGBColor, of: fn(&SimulatedPoint) -> f64| {
        measured.iter().map(move |point| Circle::new((point.jaccard, of(point)), dots(4), colour.filled()))
    };
    chart
        .draw_series(points(CANDIDATE, |point| point.candidate_rate))?
        .label("proposed by the bands (measured)")
        .legend(|(x, y)| Circle::new((x + dots(12) as i32, y), dots(4), CANDIDATE.filled()));
    chart
        .draw_series(points(VERDICT, |point| point.verdict_rate))?
        .label("reported (measured)")
        .legend(|(x, y)| Circle::new((x + dots(12) as i32, y), dots(4), VERDICT.filled()));
    Ok(())
}

/// Draws the threshold as a vertical line, and the points at which these curves cross it.
fn draw_threshold(chart: &mut Chart<'_, '_>, threshold: f64, curves: &[(&dyn Fn(f64) -> f64, RGBColor)]) -> Drawn {
    let dashes = [(threshold, 0.0), (threshold, 1.0)];
    chart.draw_series(DashedLineSeries::new(dashes, dots(7), dots(5), THRESHOLD.stroke_width(dots(3) / 2)))?;
    for (of, colour) in curves {
        let dot = |style| Circle::new((threshold, of(threshold)), dots(5), style);
        chart.draw_series([dot(WHITE.filled()), dot(colour.stroke_width(dots(5) / 2))])?;
    }
    Ok(())
}

fn draw_titles(
    chart: &Chart<'_, '_>,
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    (threshold, label): (f64, &str),
    title: &str,
) -> Drawn {
    // The label is above the frame, because inside the frame a curve would always be in the way.
    let (x, y) = chart.backend_coord(&(threshold, 1.0));
    let x = x.clamp(dots(LABEL_HALF) as i32, dots(SIZE.0 - LABEL_HALF) as i32);
    let centred = Pos::new(HPos::Center, VPos::Bottom);
    let style = ("sans-serif", dots(15)).into_text_style(root).color(&THRESHOLD).pos(centred);
    root.draw_text(label, &style, (x, y - dots(8) as i32))?;
    let style = ("sans-serif", dots(20)).into_text_style(root).pos(centred);
    root.draw_text(title, &style, ((dots(SIZE.0) / 2) as i32, dots(36) as i32))?;
    Ok(())
}
