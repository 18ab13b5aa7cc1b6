//! An S-curve -> an SVG: theory as lines, measurements as points, the threshold as a line across.

use hapax_core::tuning::SimulatedPoint;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const SIZE: (u32, u32) = (960, 600);
/// Steps of each line; the picture is about 850 dots wide.
const STEPS: u32 = 425;
const CANDIDATE: RGBColor = RGBColor(0x1F, 0x5F, 0xA8);
const VERDICT: RGBColor = RGBColor(0xC2, 0x4E, 0x0F);
const THRESHOLD: RGBColor = RGBColor(0x55, 0x55, 0x55);

/// What is drawn.
pub struct Curve<'a> {
    /// Above the picture.
    pub title: String,
    /// Drawn across.
    pub threshold: f64,
    /// Jaccard similarity -> chance to be proposed.
    pub candidate: &'a dyn Fn(f64) -> f64,
    /// Jaccard similarity -> chance to be reported.
    pub verdict: &'a dyn Fn(f64) -> f64,
    /// What a simulation found.
    pub measured: &'a [SimulatedPoint],
}

/// The picture as SVG text.
pub fn draw(curve: &Curve<'_>) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        draw_on(&root, curve)?;
        root.present()?;
    }
    Ok(svg)
}

fn draw_on(root: &DrawingArea<SVGBackend<'_>, Shift>, curve: &Curve<'_>) -> Result<(), Box<dyn std::error::Error>> {
    let mut chart = ChartBuilder::on(root)
        .caption(&curve.title, ("sans-serif", 20))
        .margin(18)
        .x_label_area_size(48)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..1.0, 0.0..1.0)?;
    chart
        .configure_mesh()
        .x_desc("Jaccard similarity of two documents")
        .y_desc("probability")
        .x_labels(11)
        .y_labels(11)
        .x_label_formatter(&|value| format!("{value:.1}"))
        .y_label_formatter(&|value| format!("{value:.1}"))
        .label_style(("sans-serif", 15))
        .axis_desc_style(("sans-serif", 17))
        .bold_line_style(BLACK.mix(0.14))
        .light_line_style(TRANSPARENT)
        .draw()?;
    let line = |of: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
        (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS)).map(|jaccard| (jaccard, of(jaccard))).collect()
    };
    let thick = |colour: RGBColor| colour.stroke_width(3);
    chart
        .draw_series(LineSeries::new(line(curve.candidate), thick(CANDIDATE)))?
        .label("proposed by the bands (theory)")
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], thick(CANDIDATE)));
    chart
        .draw_series(LineSeries::new(line(curve.verdict), thick(VERDICT)))?
        .label("reported: proposed, and estimated at or above the threshold (theory)")
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], thick(VERDICT)));
    let points = |colour: RGBColor, of: fn(&SimulatedPoint) -> f64| {
        curve.measured.iter().map(move |point| Circle::new((point.jaccard, of(point)), 5, colour.filled()))
    };
    if !curve.measured.is_empty() {
        chart
            .draw_series(points(CANDIDATE, |point| point.candidate_rate))?
            .label("proposed by the bands (measured)")
            .legend(|(x, y)| Circle::new((x + 12, y), 5, CANDIDATE.filled()));
        chart
            .draw_series(points(VERDICT, |point| point.verdict_rate))?
            .label("reported (measured)")
            .legend(|(x, y)| Circle::new((x + 12, y), 5, VERDICT.filled()));
    }
    let dashes = [(curve.threshold, 0.0), (curve.threshold, 1.0)];
    chart.draw_series(DashedLineSeries::new(dashes, 7, 5, THRESHOLD.stroke_width(2)))?;
    let right = curve.threshold > 0.5;
    let anchor = Pos::new(if right { HPos::Right } else { HPos::Left }, VPos::Bottom);
    let beside = curve.threshold + if right { -0.008 } else { 0.008 };
    let style = ("sans-serif", 15).into_text_style(root).color(&THRESHOLD).pos(anchor);
    chart.draw_series([Text::new(format!("threshold {}", curve.threshold), (beside, 0.02), style)])?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .margin(14)
        .legend_area_size(34)
        .label_font(("sans-serif", 15))
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.25))
        .draw()?;
    Ok(())
}
