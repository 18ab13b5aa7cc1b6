//! How fast texts are signed, one thread: `cargo run --release -p hapax-core --example speed`.
//! Prints microseconds and MB/s of the best of several runs, for texts of 2 KB made from a seed.

use std::hint::black_box;
use std::time::Instant;

use hapax_core::{Pipeline, Scratch, Spec, SplitMix64};

const RUNS: usize = 7;
const TEXTS: usize = 500;

fn text(generator: &mut SplitMix64, letters: &[char], bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        for _ in 0..2 + generator.next_u64() % 7 {
            text.push(letters[generator.next_u64() as usize % letters.len()]);
        }
        text.push_str(if generator.next_u64().is_multiple_of(12) { ". " } else { " " });
    }
    text
}

#[allow(clippy::print_stdout)]
fn main() {
    let alphabets = [
        ("Latin, ASCII", "etaoinshrdlucmfwypvbgETAOI"),
        ("French", "etaoinshrdlucéèàçù"),
        ("Cyrillic", "оеаинтсрвлкмдпуяызьОЕ"),
        ("Vietnamese", "nhtcgiaoếộạđươừễ"),
        ("Chinese", "的一是不了人我在有他这为之大来以个中上们"),
        ("Korean", "이다는을의가에한로사"),
    ];
    let default = Spec::default().to_string();
    for (name, letters) in alphabets {
        let letters: Vec<char> = letters.chars().collect();
        let mut generator = SplitMix64::new(1);
        let texts: Vec<String> = (0..TEXTS).map(|_| text(&mut generator, &letters, 2048)).collect();
        let bytes: usize = texts.iter().map(String::len).sum();
        for spec in [default.clone(), default.replace("word5", "char5"), default.replace("fss", "classic")] {
            let Ok(Spec::Text(spec)) = Spec::parse(&spec) else { unreachable!("a changed default") };
            let pipeline = Pipeline::new(&spec, None).expect("a valid spec");
            let mut scratch = Scratch::default();
            let best = (0..RUNS)
                .map(|_| {
                    let start = Instant::now();
                    texts.iter().for_each(|text| {
                        black_box(pipeline.sign(&mut scratch, text));
                    });
                    start.elapsed().as_secs_f64()
                })
                .fold(f64::INFINITY, f64::min);
            println!(
                "{name:14} {:?} {:?}: {:6.1} us, {:6.1} MB/s",
                spec.shingling,
                spec.sketch,
                best / TEXTS as f64 * 1e6,
                bytes as f64 / best / 1e6
            );
        }
    }
}
