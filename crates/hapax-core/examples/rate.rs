//! Reads texts, one JSON string a line, and prints how many of them one thread signs per second. `make bench-python`
//! compares the Python package with this rate.

use std::io::{self, BufRead, Write};
use std::time::Instant;

use hapax_core::{Pipeline, SignScratch, Signed, TextSpec};

const PASSES: usize = 3;

fn main() -> io::Result<()> {
    let texts: Vec<String> = io::stdin()
        .lock()
        .lines()
        .map(|line| serde_json::from_str(&line?).map_err(io::Error::from))
        .collect::<io::Result<_>>()?;
    let pipeline = Pipeline::new(&TextSpec::default(), None).expect("the default spec is valid");
    let (mut scratch, mut signed) = (SignScratch::default(), Signed::default());
    let mut rates: Vec<f64> = (0..PASSES)
        .map(|_| {
            let begun = Instant::now();
            let made = texts.iter().filter(|text| pipeline.sign_into(&mut scratch, text, &mut signed)).count();
            made as f64 / begun.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    writeln!(io::stdout(), "{}", rates[PASSES / 2])
}
