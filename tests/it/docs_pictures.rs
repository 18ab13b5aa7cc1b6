//! The pictures of the docs show the values that hapax computes: each is drawn again and must be equal, byte by byte.
//! `HAPAX_RECORD=1 cargo test --test it docs_pictures` puts the new pictures into `docs/images`.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use hapax_core::{Pipeline, SignScratch, TextSpec, tuning};

use crate::support::command;

/// The texts of the worked example in `docs/concepts.md`.
const EXAMPLE: [&str; 2] = [
    "The harbour stays closed on Monday while the old crane is taken down and a new one is put up next to the pier.",
    "The harbour stays closed on Monday while the old crane is taken down and a new one is put up next to the station.",
];
const CELL: usize = 20;
const STEP: usize = 26;
const LEFT: usize = 36;
const TOP: usize = 78;

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)
}

fn hold(name: &str, drawn: &str) {
    let path = page("images").join(name);
    if std::env::var_os("HAPAX_RECORD").is_some() {
        fs::write(&path, drawn).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == drawn, "docs/images/{name} is not what hapax draws: run this test with HAPAX_RECORD=1");
}

/// Signs the texts of the example.
fn signatures() -> [Vec<u8>; 2] {
    let pipeline = Pipeline::new(&TextSpec::default(), None).unwrap();
    let mut scratch = SignScratch::default();
    EXAMPLE.map(|text| pipeline.sign(&mut scratch, text).unwrap().signature)
}

/// Draws both signatures slot by slot: one column for each band, and at the right the slots in no band.
fn bands(signatures: &[Vec<u8>; 2]) -> String {
    let [a, b] = signatures;
    let banding = tuning::default_banding(TextSpec::default().shape, 0.8);
    let (bands, rows) = (banding.bands() as usize, banding.rows() as usize);
    let equal: Vec<bool> = a.iter().zip(b).map(|(a, b)| a == b).collect();
    let equal_bands = (0..bands).filter(|band| equal[band * rows..][..rows].iter().all(|equal| *equal)).count();
    let (width, height) = (LEFT * 2 + (bands + 2) * STEP, TOP + rows * STEP + 62);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"14\">\n<style>\n\
         .card {{ fill: #ffffff }} .words {{ fill: #24292f }} .small {{ fill: #57606a; font-size: 12px }}\n\
         .found {{ fill: #1f5fa8 }} .equal {{ fill: #b9cfe6 }} .other {{ fill: #d9703a }}\n\
         @media (prefers-color-scheme: dark) {{\n\
         .card {{ fill: #161b22 }} .words {{ fill: #e6edf3 }} .small {{ fill: #9da7b3 }}\n\
         .found {{ fill: #4c94e0 }} .equal {{ fill: #2c405a }} .other {{ fill: #d9703a }}\n}}\n</style>\n\
         <rect class=\"card\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n\
         <text class=\"words\" x=\"{LEFT}\" y=\"34\">{} of {} slots are equal. All {rows} slots are equal in {equal_bands} of \
         {bands} bands: each of these proposes the pair.</text>\n",
        equal.iter().filter(|equal| **equal).count(),
        equal.len(),
    );
    for (slot, is_equal) in equal.iter().enumerate() {
        let (band, row) = (slot / rows, slot % rows);
        let is_found = band < bands && equal[band * rows..][..rows].iter().all(|equal| *equal);
        let class = if is_found { "found" } else { ["other", "equal"][usize::from(*is_equal)] };
        // There is a gap before the slots in no band.
        let (x, y) = (LEFT + band * STEP + if band == bands { STEP } else { 0 }, TOP + row * STEP);
        let _ =
            writeln!(svg, "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{CELL}\" rx=\"3\"/>");
    }
    let (last, below) = (LEFT + (bands - 1) * STEP, TOP + rows * STEP + 34);
    let _ = writeln!(svg, "<text class=\"small\" x=\"{LEFT}\" y=\"66\">band 1</text>");
    let _ =
        writeln!(svg, "<text class=\"small\" x=\"{}\" y=\"66\" text-anchor=\"end\">band {bands}</text>", last + CELL);
    let _ =
        writeln!(svg, "<text class=\"small\" x=\"{}\" y=\"66\" text-anchor=\"end\">no band</text>", width - LEFT + 6);
    let legend =
        [("found", "in a band whose 8 slots are all equal"), ("equal", "equal slot"), ("other", "different slot")];
    for ((class, words), x) in legend.iter().zip([LEFT, LEFT + 320, LEFT + 450]) {
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"14\" height=\"14\" rx=\"3\"/>",
            below - 12
        );
        let _ = writeln!(svg, "<text class=\"small\" x=\"{}\" y=\"{below}\">{words}</text>", x + 22);
    }
    svg + "</svg>\n"
}

/// The README names the command that draws the picture it shows.
#[test]
fn the_s_curve_is_what_the_command_in_the_readme_draws() {
    let readme = fs::read_to_string(page("../README.md")).unwrap();
    let (before, _) = readme.split_once(" docs/images/s-curve.svg`").expect("the command");
    let (_, arguments) = before.rsplit_once("`hapax ").expect("the command");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s-curve.svg");
    let arguments: Vec<_> = arguments.split(' ').chain(path.to_str()).collect();
    let ran = command::run(&arguments);
    assert!(ran.status.success(), "{arguments:?}: {ran:?}");
    hold("s-curve.svg", &fs::read_to_string(path).unwrap());
}

#[test]
fn the_bands_are_those_of_the_worked_example() {
    let signatures = signatures();
    hold("bands.svg", &bands(&signatures));
    let concepts = fs::read_to_string(page("concepts.md")).unwrap();
    for text in EXAMPLE {
        assert!(concepts.contains(text), "docs/concepts.md does not show the text: {text}");
    }
    let first: Vec<_> = signatures.map(|slots| format!("{:?}", &slots[..8])).into();
    assert!(first.iter().all(|slots| concepts.contains(slots)), "the first eight slots are {first:?}");
    assert!(concepts.contains("233 of 256") && concepts.contains("15 of the 31"), "the numbers are in the picture");
}
