//! Similarities -> how many there are in each part from 0 to 1, as bars of text.

use std::io::{self, Write};

use indicatif::HumanCount;

/// The number of equal parts of the similarities from 0 to 1.
const PARTS: usize = 20;
/// The length of the longest bar.
const BAR: u64 = 40;

#[derive(Debug, Default)]
pub(in crate::cli) struct Histogram {
    parts: [u64; PARTS],
}

impl Histogram {
    pub(in crate::cli) fn add(&mut self, similarity: f64) {
        let part = (similarity * PARTS as f64) as usize;
        self.parts[part.min(PARTS - 1)] += 1;
    }

    /// Returns how many similarities there are in each part.
    pub(in crate::cli) fn parts(&self) -> &[u64] {
        &self.parts
    }

    /// Writes the bars, for people. Nothing is written if there are no similarities.
    pub(in crate::cli) fn write(&self, title: &str, out: &mut impl Write) -> io::Result<()> {
        let most = self.parts.iter().copied().max().unwrap_or_default();
        let Some(first) = self.parts.iter().position(|&count| count > 0) else { return Ok(()) };
        writeln!(out, "\n{title}")?;
        for (part, &count) in self.parts.iter().enumerate().skip(first) {
            let [from, to] = [part, part + 1].map(|edge| edge as f64 / PARTS as f64);
            let bar = "█".repeat((count * BAR).div_ceil(most) as usize);
            writeln!(
                out,
                "{}",
                format!("{from:.2} to {to:.2}{:>16}  {bar}", HumanCount(count).to_string()).trim_end()
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_histogram_begins_with_the_lowest_similarity() {
        let mut histogram = Histogram::default();
        [0.81, 0.84, 0.97].into_iter().for_each(|similarity| histogram.add(similarity));
        let mut out = Vec::new();
        histogram.write("similarity", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let counts: Vec<_> = text.lines().skip(2).map(|line| line.split_whitespace().nth(3).unwrap()).collect();
        assert_eq!(counts, ["2", "0", "0", "1"], "{text}");
        assert!(text.ends_with(&format!("1  {}\n", "█".repeat(20))));
    }
}
