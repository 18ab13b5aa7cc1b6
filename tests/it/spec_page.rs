//! `docs/spec.md` is complete: a program written only from that page, in another language, makes the same signatures.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const VECTORS: &str = "crates/hapax-core/tests/vectors.json";

/// Reads `name=number` in the last line that the program prints.
fn figures(output: &str) -> BTreeMap<&str, usize> {
    let pairs = output.lines().last().unwrap_or_default().split(' ').filter_map(|pair| pair.split_once('='));
    pairs.filter_map(|(name, number)| Some((name, number.parse().ok()?))).collect()
}

/// Returns the numbers of cases and stages in the file of known answers.
fn known(path: &Path) -> (usize, usize) {
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let cases = file["cases"].as_array().unwrap();
    (cases.len(), cases.iter().map(|case| case["stages"].as_object().unwrap().len()).sum())
}

/// The program leaves out cases with characters that its Python does not know yet. So the test requires a little fewer
/// cases than the file has. The test still fails if a file is not read, or if a loop skips cases.
#[test]
fn a_program_written_from_the_page_agrees() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (cases, stages) = known(&root.join(VECTORS));
    let run =
        Command::new("python3").current_dir(root).args(["-X", "utf8", "tests/spec/hapax_spec.py", VECTORS]).output();
    let output = match run {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            assert!(std::env::var_os("CI").is_none(), "python3 is missing: CI must run tests/spec/hapax_spec.py");
            eprintln!("LEFT OUT: python3 is missing, so tests/spec/hapax_spec.py was not compared with {VECTORS}");
            return;
        }
        run => run.unwrap(),
    };
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{errors}");
    println!("{said}");

    let figures = figures(&said);
    assert_eq!(figures["differences"], 0, "{said}");
    assert_eq!(figures["cases"] + figures["left_out"], cases, "{said}");
    assert!(figures["cases"] * 10 >= cases * 9, "fewer than nine in ten cases ran: {said}");
    assert!(figures["stages"] * 10 >= stages * 9, "fewer than nine in ten stages were compared: {said}");
    assert!(cases >= 346 && stages >= 4704, "the file has only {cases} cases with {stages} stages");
    assert!(figures["page"] >= 53, "fewer answers of the page were compared than there are: {said}");
}
