//! A report -> SVG: latency by percentile, requests over time, and the server's memory over time.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Phase, Report};

/// The size at which the picture is shown.
const SIZE: (u32, u32) = (1_400, 1_260);
/// The width of the list that names the lines, to the right of the chart of latencies.
const LIST: u32 = 250;
/// The picture is drawn larger by this factor, because plotters rounds to whole pixels and lines would look jagged.
const SCALE: u32 = 4;
const GOOD: RGBColor = RGBColor(0x1F, 0x5F, 0xA8);
const REFUSED: RGBColor = RGBColor(0xC2, 0x4E, 0x0F);
const WRONG: RGBColor = RGBColor(0xB0, 0x10, 0x40);
const ANONYMOUS: RGBColor = RGBColor(0x3C, 0x8D, 0x40);
const PHASE: RGBColor = RGBColor(0x99, 0x99, 0x99);
/// The colours of the lines in one chart.
const LINES: [RGBColor; 10] = [
    RGBColor(0x1F, 0x5F, 0xA8),
    RGBColor(0xC2, 0x4E, 0x0F),
    RGBColor(0x3C, 0x8D, 0x40),
    RGBColor(0x7B, 0x3F, 0x9E),
    RGBColor(0x8C, 0x6D, 0x1F),
    RGBColor(0x00, 0x8B, 0x8B),
    RGBColor(0xD0, 0x3A, 0x7E),
    RGBColor(0x55, 0x55, 0x55),
    RGBColor(0x6C, 0x8E, 0xBF),
    RGBColor(0xE0, 0x9A, 0x2C),
];

type Drawn = Result<(), Box<dyn std::error::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Returns the picture as SVG text.
pub(super) fn draw(report: &Report) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    {
        let drawn = (dots(SIZE.0), dots(SIZE.1));
        let root = SVGBackend::with_string(&mut svg, drawn).into_drawing_area();
        root.fill(&WHITE)?;
        let title = format!("hapax-loadtest {}: {}", report.scenario, report.machine);
        let root = root.titled(&title, ("sans-serif", dots(18)))?;
        let areas = root.split_evenly((3, 1));
        draw_latencies(&areas[0], report)?;
        draw_requests(&areas[1], report)?;
        draw_memory(&areas[2], report)?;
        root.present()?;
    }
    // The drawing keeps its own coordinates in the viewBox. Only the size at which it is shown is set here.
    let drawn = format!("width=\"{}\" height=\"{}\"", dots(SIZE.0), dots(SIZE.1));
    Ok(svg.replacen(&drawn, &format!("width=\"{}\" height=\"{}\"", SIZE.0, SIZE.1), 1))
}

/// Converts a length of the shown picture to dots of the drawing.
const fn dots(shown: u32) -> u32 {
    shown * SCALE
}

/// Returns when the first phase began and when the last one ended, in seconds.
fn time(report: &Report) -> Range<f64> {
    let end = |phase: &Phase| phase.begun_s + phase.over_time.good.len() as f64;
    let begin = report.phases.iter().map(|phase| phase.begun_s).fold(f64::INFINITY, f64::min).max(0.0);
    begin..report.phases.iter().map(end).fold(begin + 1.0, f64::max)
}

/// Draws latency (logarithmic) over the share of slower requests (logarithmic), with one line for each kind in each
/// phase.
fn draw_latencies(area: &Area<'_>, report: &Report) -> Drawn {
    let lines: Vec<(String, &[(f64, f64)])> = report
        .phases
        .iter()
        .flat_map(|phase| {
            let name = |kind: &str| format!("{}: {kind}", phase.name);
            phase.operations.iter().map(move |operation| (name(&operation.kind), &*operation.tail))
        })
        .filter(|(_, tail)| tail.len() > 1)
        .collect();
    let all = || lines.iter().flat_map(|(_, tail)| tail.iter());
    let (least, most) = all().fold((1.0_f64, 1.0_f64), |(least, most), (_, ms)| (least.min(*ms), most.max(*ms)));
    let tail_max = all().map(|(share, _)| 1.0 / share).fold(10.0, f64::max);
    // The names are in a list to the right of the chart, because a tour has more lines than fit into a legend.
    let (area, list) = area.split_horizontally(dots(SIZE.0 - LIST));
    list_lines(&list, lines.iter().map(|(name, _)| name.as_str()))?;
    let mut chart = ChartBuilder::on(&area)
        .margin(dots(14))
        .caption("latency from the time a request was due, by percentile", ("sans-serif", dots(15)))
        .x_label_area_size(dots(36))
        .y_label_area_size(dots(64))
        .build_cartesian_2d((1.0..tail_max * 1.1).log_scale(), (least * 0.8..most * 1.3).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("percentile")
        .y_desc("ms")
        .x_label_formatter(&|slower| percentile(*slower))
        .y_label_formatter(&|ms| super::table::number(*ms))
        .label_style(("sans-serif", dots(13)))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (n, (_, tail)) in lines.iter().enumerate() {
        let style = LINES[n % LINES.len()].stroke_width(dots(2));
        chart.draw_series(LineSeries::new(tail.iter().map(|(share, ms)| (1.0 / share, *ms)), style))?;
    }
    Ok(())
}

fn list_lines<'a>(area: &Area<'_>, names: impl ExactSizeIterator<Item = &'a str>) -> Drawn {
    let height = (dots(SIZE.1 / 3 - 30) / names.len().max(1) as u32).min(dots(18));
    for (n, name) in names.enumerate() {
        let y = (dots(20) + height * n as u32) as i32;
        let style = LINES[n % LINES.len()].stroke_width(dots(2));
        area.draw(&PathElement::new([(0, y), (dots(20) as i32, y)], style))?;
        let font = ("sans-serif", height * 3 / 4).into_font();
        area.draw(&Text::new(name, (dots(26) as i32, y - height as i32 / 3), font))?;
    }
    Ok(())
}

/// `100.0` -> `99 %`.
fn percentile(slower: f64) -> String {
    format!("{:.*}", (slower.log10().ceil() as usize).saturating_sub(2), 100.0 * (1.0 - 1.0 / slower)) + " %"
}

/// Draws good, refused and wrong answers by second, with the names of the phases.
fn draw_requests(area: &Area<'_>, report: &Report) -> Drawn {
    let of = |phase: &Phase, counts: &[u64]| -> Vec<(f64, f64)> {
        let at = |second: usize| phase.begun_s + second as f64 + 0.5;
        counts.iter().enumerate().map(|(second, &count)| (at(second), count as f64)).collect()
    };
    let main = || report.phases.iter().filter(|phase| !phase.memory.is_empty() || report.phases.len() == 1);
    let counts = main().flat_map(|phase| phase.over_time.good.iter().chain(&phase.over_time.refused));
    let most = counts.copied().max().unwrap_or(1).max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(dots(14))
        .caption("answers a second", ("sans-serif", dots(15)))
        .x_label_area_size(dots(36))
        .y_label_area_size(dots(64))
        .build_cartesian_2d(time(report), 0.0..most * 1.15)?;
    chart
        .configure_mesh()
        .x_desc("seconds")
        .label_style(("sans-serif", dots(13)))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (name, colour, pick) in [
        ("good", GOOD, (|phase: &Phase| phase.over_time.good.clone()) as fn(&Phase) -> Vec<u64>),
        ("refused", REFUSED, |phase| phase.over_time.refused.clone()),
        ("wrong", WRONG, |phase| phase.over_time.wrong.clone()),
    ] {
        let style = colour.stroke_width(dots(2));
        for (n, phase) in main().enumerate() {
            let line = LineSeries::new(of(phase, &pick(phase)), style).point_size(dots(2));
            let drawn = chart.draw_series(line)?;
            if n == 0 {
                drawn.label(name).legend(move |(x, y)| PathElement::new([(x, y), (x + dots(20) as i32, y)], style));
            }
        }
    }
    for phase in main() {
        let edge = [(phase.begun_s, 0.0), (phase.begun_s, most * 1.15)];
        chart.draw_series(LineSeries::new(edge, PHASE.stroke_width(dots(1))))?;
        // The names are written downwards, because short phases are narrower than their names.
        let style = ("sans-serif", dots(11)).into_font().transform(FontTransform::Rotate90).color(&PHASE);
        let x = phase.begun_s + (time(report).end - time(report).start) * 0.012;
        chart.draw_series([Text::new(phase.name.clone(), (x, most * 1.14), style)])?;
    }
    legend(&mut chart)
}

/// Draws the server's memory.
fn draw_memory(area: &Area<'_>, report: &Report) -> Drawn {
    let samples = || report.phases.iter().flat_map(|phase| &phase.memory);
    let most = samples().map(|memory| memory.rss).max().unwrap_or(1) as f64 / 1e6;
    let mut chart = ChartBuilder::on(area)
        .margin(dots(14))
        .caption("memory of the server", ("sans-serif", dots(15)))
        .x_label_area_size(dots(36))
        .y_label_area_size(dots(64))
        .build_cartesian_2d(time(report), 0.0..most * 1.15)?;
    chart
        .configure_mesh()
        .x_desc("seconds")
        .y_desc("MB")
        .label_style(("sans-serif", dots(13)))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (name, colour, pick) in [
        ("resident", GOOD, (|memory| memory.rss) as fn(&crate::memory::Memory) -> u64),
        ("anonymous", ANONYMOUS, |memory| memory.anonymous),
    ] {
        let style = colour.stroke_width(dots(2));
        let points = samples().map(|memory| (memory.at_s, pick(memory) as f64 / 1e6));
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + dots(20) as i32, y)], style));
    }
    legend(&mut chart)
}

fn legend<'a, X, Y>(chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>) -> Drawn
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .margin(dots(8))
        .legend_area_size(dots(26))
        .label_font(("sans-serif", dots(12)))
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.2).stroke_width(dots(1)))
        .draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_slower_requests_are_percentiles() {
        assert_eq!(
            [2.0, 10.0, 100.0, 1_000.0, 10_000.0].map(percentile),
            ["50 %", "90 %", "99 %", "99.9 %", "99.99 %"]
        );
    }
}
