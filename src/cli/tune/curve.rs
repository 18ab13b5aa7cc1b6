//! Draws an S-curve as lines of text: similarity from left to right, probability upwards.

use std::fmt::Write;

use crate::cli::plot::Curve;

/// The columns for each tenth of the similarity, and the lines for each quarter of the probability.
const TENTH: usize = 7;
const QUARTER: usize = 4;
const COLUMNS: usize = 10 * TENTH + 1;
const LINES: usize = 4 * QUARTER + 1;

const CANDIDATE: char = '•';
const VERDICT: char = '○';
const THRESHOLD: char = '┊';

/// Returns the picture. No line is longer than 78 characters.
pub(super) fn draw(curve: &Curve<'_>) -> String {
    let mut cells = vec![[' '; COLUMNS]; LINES];
    let at = (curve.threshold.clamp(0.0, 1.0) * (COLUMNS - 1) as f64).round() as usize;
    cells.iter_mut().for_each(|line| line[at] = THRESHOLD);
    // Candidates are drawn over verdicts: the two curves differ only in the middle.
    for (mark, of) in [(VERDICT, curve.verdict), (CANDIDATE, curve.candidate)] {
        let mut before = None;
        let shares = (0..COLUMNS).map(|column| of(column as f64 / (COLUMNS - 1) as f64).clamp(0.0, 1.0));
        for (column, share) in shares.enumerate() {
            let line = ((1.0 - share) * (LINES - 1) as f64).round() as usize;
            // A steep part also fills the lines that it passes, so that the curve has no holes.
            let passed = match before {
                Some(before) if line + 1 < before => line..=before - 1,
                _ => line..=line,
            };
            passed.for_each(|line| cells[line][column] = mark);
            before = Some(line);
        }
    }
    let mut text = String::new();
    for (number, line) in cells.iter().enumerate() {
        let label = match number % QUARTER {
            0 => format!("{:.2} ┤", 1.0 - number as f64 / (LINES - 1) as f64),
            _ => "     │".to_owned(),
        };
        let line: String = line.iter().collect();
        let _ = writeln!(text, "{label}{}", line.trim_end());
    }
    let ticks: String = (0..COLUMNS).map(|column| if column % TENTH == 0 { '┴' } else { '─' }).collect();
    let numbers: String =
        (0..=10).map(|tenth| format!("{:<TENTH$}", format!("{:.1}", f64::from(tenth) / 10.0))).collect();
    let _ = writeln!(text, "     └{ticks}");
    let _ = writeln!(text, "     {}", numbers.trim_end());
    let _ = writeln!(
        text,
        "     probability by similarity:  {CANDIDATE} proposed   {VERDICT} reported   {THRESHOLD} threshold {}",
        curve.threshold
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(threshold: f64, candidate: &dyn Fn(f64) -> f64, verdict: &dyn Fn(f64) -> f64) -> Vec<String> {
        let text = draw(&Curve { title: String::new(), threshold, candidate, verdict, measured: &[] });
        text.lines().map(str::to_owned).collect()
    }

    /// Returns the character at a similarity and a probability.
    fn cell(lines: &[String], jaccard: f64, share: f64) -> char {
        let line = &lines[((1.0 - share) * 16.0).round() as usize];
        line.chars().nth(6 + (jaccard * 70.0).round() as usize).unwrap_or(' ')
    }

    #[test]
    fn curves_are_where_they_should_be() {
        let lines = drawn(0.8, &|jaccard| jaccard, &|jaccard| if jaccard < 0.8 { 0.0 } else { 1.0 });
        assert_eq!(lines.len(), 20);
        assert!(lines.iter().all(|line| line.chars().count() <= 78), "{lines:#?}");
        for jaccard in [0.0, 0.25, 0.5, 0.75, 1.0] {
            assert_eq!(cell(&lines, jaccard, jaccard), CANDIDATE, "{lines:#?}");
        }
        assert_eq!(cell(&lines, 0.6, 0.0), VERDICT);
        assert_eq!(cell(&lines, 0.8, 0.5), VERDICT, "a step is a line upwards");
        assert_eq!(cell(&lines, 0.9, 1.0), VERDICT);
        assert_eq!(cell(&lines, 0.2, 0.8), ' ');
        assert!(lines[18].trim_start().starts_with("0.0") && lines[18].ends_with("1.0"), "{lines:#?}");
        let low = drawn(0.3, &|_| 0.0, &|_| 0.0);
        assert_eq!(cell(&low, 0.3, 0.5), THRESHOLD);
    }

    #[test]
    fn the_ends_are_drawn() {
        for threshold in [f64::MIN_POSITIVE, 1.0] {
            for share in [0.0, 1.0] {
                let lines = drawn(threshold, &|_| share, &|_| share);
                assert_eq!((cell(&lines, 0.0, share), cell(&lines, 1.0, share)), (CANDIDATE, CANDIDATE));
            }
        }
    }
}
