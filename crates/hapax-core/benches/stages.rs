//! Measures every stage of signing alone, and all of them together: `make bench-stages`, or `cargo bench -p hapax-core
//! --bench stages [-- FILTER]`. At its end, it prints a table of criterion's measurements. Absolute times drift. Each
//! figure is therefore also given as a ratio to a plain pass over the same bytes in the same run,
//! `str::to_ascii_lowercase`.

mod inputs;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use hapax_core::sketch::{SketchState, Sketcher};
use hapax_core::verify::matching_slots;
use hapax_core::{Pipeline, SignScratch, Signed, Simd, SketchKind, Spec, SplitMix64, Stages, TextSpec, tuning};
use inputs::{KINDS, SIZES};

/// The number of texts of one kind and size that a measurement repeats. Branch predictors cannot learn so many texts.
const TEXTS: usize = 64;
/// Sketches other than the default, measured with texts of 2 KB.
const SKETCHES: [&str; 5] = ["fss128x8", "fss1024x8", "classic128x8", "classic256x8", "oph256x8"];
const SLOTS: [u32; 3] = [128, 256, 1024];
/// The numbers of shingles in word texts of 100 B, 2 KB and 100 KB.
const SHINGLES: [usize; 3] = [12, 300, 15_000];

fn main() {
    let mut criterion = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(20)
        .configure_from_args();
    texts(&mut criterion);
    sketches(&mut criterion);
    bands_and_verification(&mut criterion);
    criterion.final_summary();
    if std::env::args().any(|argument| argument == "--bench") {
        table();
    }
}

fn spec(sketch: &str) -> TextSpec {
    match Spec::parse(&Spec::default().to_string().replace("fss256x8", sketch)).expect("a valid spec") {
        Spec::Text(spec) => spec,
        Spec::External { .. } => unreachable!("the default spec is of texts"),
    }
}

/// Measures one pass over one input after another; each figure is for one input.
fn round<T>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, inputs: &[T], mut pass: impl FnMut(&T)) {
    let mut next = (0..inputs.len()).cycle();
    group.bench_function(name, |bencher| bencher.iter(|| pass(&inputs[next.next().expect("it never ends")])));
}

fn texts(criterion: &mut Criterion) {
    let default = Pipeline::new(&spec("fss256x8"), None).expect("a valid spec");
    for kind in KINDS {
        for (size, bytes) in SIZES {
            let texts = kind.texts(bytes, TEXTS);
            let total: usize = texts.iter().map(String::len).sum();
            let mut group = criterion.benchmark_group(format!("{}/{size}", kind.name));
            group.throughput(Throughput::Bytes((total / TEXTS) as u64));

            round(&mut group, "copy", &texts, |text| drop(black_box(text.to_ascii_lowercase())));

            let mut stages = Stages::new(&default);
            let canonical: Vec<String> = texts.iter().map(|text| stages.canonical(text).to_owned()).collect();
            let hashes: Vec<Vec<u64>> = canonical.iter().map(|text| stages.token_hashes(text).to_owned()).collect();
            let shingles: Vec<Vec<u64>> = hashes.iter().map(|hashes| stages.shingles(hashes).to_owned()).collect();
            round(&mut group, "normalise", &texts, |text| {
                black_box(stages.canonical(text));
            });
            round(&mut group, "tokens", &canonical, |text| {
                black_box(stages.token_hashes(text));
            });
            round(&mut group, "shingles", &hashes, |hashes| {
                black_box(stages.shingles(hashes));
            });
            let (sketcher, mut state) = (Sketcher::new(SketchKind::Fss, 256), SketchState::default());
            round(&mut group, "sketch", &shingles, |shingles| sketch(&sketcher, &mut state, shingles));

            let (mut scratch, mut signed) = (SignScratch::default(), Signed::default());
            let mut sign = |group: &mut BenchmarkGroup<'_, WallTime>, name: &str, pipeline: &Pipeline| {
                round(group, name, &texts, |text| {
                    black_box(pipeline.sign_into(&mut scratch, text, &mut signed));
                });
            };
            sign(&mut group, "sign", &default);
            if size == "2KB" {
                for sketch in SKETCHES {
                    let pipeline = Pipeline::new(&spec(sketch), None).expect("a valid spec");
                    sign(&mut group, &format!("sign {sketch}"), &pipeline);
                }
                for simd in Simd::available() {
                    let pipeline = Pipeline::with_simd(&spec("fss256x8"), None, simd).expect("a valid spec");
                    sign(&mut group, &format!("sign {}", simd.name()), &pipeline);
                }
            }
        }
    }
}

fn sketch(sketcher: &Sketcher, state: &mut SketchState, shingles: &[u64]) {
    sketcher.begin(state);
    sketcher.push(state, shingles);
    sketcher.finish(state);
    black_box(state.ranks());
}

fn sketches(criterion: &mut Criterion) {
    let mut generator = SplitMix64::new(5);
    for count in SHINGLES {
        let sets: Vec<Vec<u64>> = (0..TEXTS).map(|_| (0..count).map(|_| generator.next_u64()).collect()).collect();
        let mut group = criterion.benchmark_group(format!("sketch/{count} shingles"));
        group.throughput(Throughput::Elements(count as u64));
        for kind in SketchKind::ALL {
            for k in SLOTS {
                let (sketcher, mut state, mut packed) = (Sketcher::new(kind, k), SketchState::default(), Vec::new());
                round(&mut group, &format!("{}{k}", kind.name()), &sets, |set| {
                    sketch(&sketcher, &mut state, set);
                    black_box(sketcher.pack_into(&mut state, 8, &mut packed));
                });
            }
        }
    }
}

fn bands_and_verification(criterion: &mut Criterion) {
    let mut generator = SplitMix64::new(6);
    let shape = TextSpec::default().shape;
    let banding = tuning::default_banding(shape, 0.8);
    let signatures: Vec<Vec<u8>> =
        (0..1_000).map(|_| (0..shape.bytes()).map(|_| generator.next_u64() as u8).collect()).collect();
    let mut group = criterion.benchmark_group("signature/256x8");
    round(&mut group, "bands 31x8", &signatures, |signature| {
        black_box(banding.keys(signature, shape).fold(0, |sum, key| sum ^ key.0));
    });
    round(&mut group, "verify", &signatures, |signature| {
        black_box(matching_slots(signature, &signatures[0], shape));
    });
}

/// Criterion's measurement of a benchmark: median and median absolute deviation in nanoseconds.
fn measured(group: &str, name: &str) -> Option<(f64, f64)> {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().map(Path::to_owned)?.join("criterion");
    // Criterion replaces slashes in the names of folders.
    let path = root.join(group.replace('/', "_")).join(name).join("new/estimates.json");
    let text = std::fs::read_to_string(path).ok()?;
    let estimates: serde_json::Value = serde_json::from_str(&text).ok()?;
    let of = |what: &str| estimates[what]["point_estimate"].as_f64();
    Some((of("median")?, of("median_abs_dev")?))
}

/// Prints all measurements as Markdown.
#[allow(clippy::print_stdout)]
fn table() {
    println!("\n{} instructions\n", Simd::best().name());
    println!("| text | stage | us a document | ± | MB/s | ns a shingle | x copy in lower case |");
    println!("|---|---|--:|--:|--:|--:|--:|");
    let default = Pipeline::new(&spec("fss256x8"), None).expect("a valid spec");
    let (mut scratch, mut signed) = (SignScratch::default(), Signed::default());
    for kind in KINDS {
        for (size, bytes) in SIZES {
            let group = format!("{}/{size}", kind.name);
            let Some((copy, _)) = measured(&group, "copy") else { continue };
            let texts = kind.texts(bytes, TEXTS);
            let mean_bytes = texts.iter().map(String::len).sum::<usize>() as f64 / TEXTS as f64;
            let shingles: u64 = texts
                .iter()
                .map(|text| if default.sign_into(&mut scratch, text, &mut signed) { signed.shingles } else { 0 })
                .sum();
            let levels = Simd::available().map(|simd| format!("sign {}", simd.name()));
            let stages = ["copy", "normalise", "tokens", "shingles", "sketch", "sign"].map(String::from);
            let all = stages.into_iter().chain(SKETCHES.map(|sketch| format!("sign {sketch}"))).chain(levels);
            for name in all {
                let Some((ns, deviation)) = measured(&group, &name) else { continue };
                println!(
                    "| {} {size} | {name} | {:.2} | {:.0} % | {:.0} | {:.1} | {:.1} |",
                    kind.name,
                    ns / 1e3,
                    100.0 * deviation / ns,
                    mean_bytes / ns * 1e3,
                    ns * TEXTS as f64 / shingles as f64,
                    ns / copy,
                );
            }
        }
    }
    println!("\n| shingles | sketch | us a set | ± | ns a shingle |\n|--:|---|--:|--:|--:|");
    for count in SHINGLES {
        for (kind, k) in SketchKind::ALL.into_iter().flat_map(|kind| SLOTS.map(|k| (kind, k))) {
            let name = format!("{}{k}", kind.name());
            let Some((ns, deviation)) = measured(&format!("sketch/{count} shingles"), &name) else { continue };
            let (us, spread) = (ns / 1e3, 100.0 * deviation / ns);
            println!("| {count} | {name} | {us:.2} | {spread:.0} % | {:.1} |", ns / count as f64);
        }
    }
    println!("\n| signature of 256 x 8 bits | ns | ± |\n|---|--:|--:|");
    for name in ["bands 31x8", "verify"] {
        let Some((ns, deviation)) = measured("signature/256x8", name) else { continue };
        println!("| {name} | {ns:.0} | {:.0} % |", 100.0 * deviation / ns);
    }
}
