//! With `--memory`, a run takes a part of the memory that its documents would need, and the result is the same byte for byte.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{corpus, lines, names, read, refused};
use crate::cli::text;
use crate::quality::corpora;
use crate::support::command::hapax;
use crate::support::until::until;

/// The limits of these runs are so low that many searches reach them.
const LOW_LIMITS: [(&str, &str); 2] = [("BUCKET_READ_MAX", "9"), ("CANDIDATES_MAX", "5")];

/// The ways to deduplicate. With the last ones, nearly all documents are in one group that is too large for the memory.
const WAYS: [&[&str]; 13] = [
    &[],
    &["--keep", "longest"],
    &["--keep", "max:score", "--threshold", "0.7"],
    &["--clusters", "components"],
    &["--clusters", "components", "--keep", "max:score"],
    &["--verify", "exact", "--threshold", "0.6"],
    &["--verify", "borderline", "--clusters", "components"],
    &["--preset", "fineweb"],
    &["--preset", "datasketch", "--threshold", "0.7"],
    &["--verify", "none", "--bands", "30", "--rows", "2"],
    &["--bands", "64", "--rows", "1", "--threshold", "0.6", "--keep", "longest"],
    &["--bands", "64", "--rows", "1", "--verify", "exact", "--threshold", "0.5"],
    &["--bands", "64", "--rows", "1", "--verify", "exact", "--threshold", "0.5", "--clusters", "components"],
];

/// Returns the output, the report, and the summary without the rows that have times.
fn run(dir: &Path, arguments: &[&str], limits: &[(&str, &str)]) -> (Vec<u8>, Vec<u8>, Vec<String>) {
    let arguments = [&["dedup"], arguments, &["-o", "out", "--report", "report"]].concat();
    let mut command = hapax(&arguments);
    command.envs(limits.iter().map(|(name, value)| (format!("HAPAX__LIMITS__{name}"), value)));
    let run = command.current_dir(dir).env_remove("TMPDIR").output().unwrap();
    assert!(run.status.success(), "{arguments:?}: {run:?}");
    assert!(!names(dir).iter().any(|name| name.starts_with(".hapax")), "{arguments:?}");
    let has_time = |row: &&str| row.starts_with("seconds") || row.contains("/s");
    let rows = text(&run.stdout).lines().filter(|row| !has_time(row)).map(str::to_owned).collect();
    (read(&dir.join("out")), read(&dir.join("report")), rows)
}

/// Compares runs with and without bounded memory. Returns whether some documents were not compared because of a limit.
fn is_the_same(dir: &Path, input: &str, way: &[&str], limits: &[(&str, &str)]) -> bool {
    let input = [&[input], way].concat();
    let in_memory = run(dir, &input, limits);
    let bounded = run(dir, &[&input[..], &["--memory", "1MiB"]].concat(), limits);
    assert_eq!(bounded.2, in_memory.2, "{way:?} {limits:?}");
    assert!(bounded.0 == in_memory.0 && bounded.1 == in_memory.1, "{way:?} {limits:?}");
    in_memory.2.iter().any(|row| row.starts_with("capped"))
}

#[test]
fn a_run_in_bounded_memory_has_the_same_result() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("in.jsonl"), lines(&corpus(2500, 31))).unwrap();
    let mut capped = 0;
    for way in WAYS {
        is_the_same(dir.path(), "in.jsonl", way, &[]);
        capped += usize::from(is_the_same(dir.path(), "in.jsonl", way, &LOW_LIMITS));
    }
    assert!(capped > 5, "{capped}");
}

#[test]
fn a_run_in_bounded_memory_has_the_same_result_on_real_corpora() {
    let Some(folder) = corpora() else { return };
    let dir = tempfile::tempdir().unwrap();
    let input = folder.join("licences.jsonl.zst");
    let input = input.to_str().expect("a path of text");
    for way in [WAYS[0], WAYS[4], WAYS[12]].map(|way| way.iter().map(|word| word.replace("max:score", "longest"))) {
        let way: Vec<_> = way.collect();
        let way: Vec<_> = way.iter().map(String::as_str).collect();
        assert!(is_the_same(dir.path(), input, &way, &LOW_LIMITS), "{way:?}");
    }
}

/// Returns the largest resident memory of a run, in bytes.
fn peak(dir: &Path, arguments: &[&str]) -> u64 {
    let arguments = [&["dedup"], arguments].concat();
    let mut command = hapax(&arguments);
    let mut child = command.current_dir(dir).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (status, mut most) = (format!("/proc/{}/status", child.id()), 0);
    while child.try_wait().unwrap().is_none() {
        let peak = std::fs::read_to_string(&status).unwrap_or_default();
        let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        most = most.max(peak.map_or(0, |kilobytes: u64| kilobytes << 10));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(child.wait().unwrap().success());
    most
}

/// The memory of a run besides `--memory`: for the chunks of the files that are read and signed, and for the program.
const BESIDES: u64 = 100 << 20;

#[test]
fn documents_that_need_three_times_the_memory_are_deduplicated_in_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("few.jsonl"), lines(&corpus(5000, 32))).unwrap();
    std::fs::write(dir.path().join("in.jsonl"), lines(&corpus(80_000, 32))).unwrap();
    let way = ["--clusters", "components", "--shingle", "word3"];
    let few = peak(dir.path(), &[&["few.jsonl", "-o", "few"], &way[..]].concat());
    let whole = peak(dir.path(), &[&["in.jsonl", "-o", "whole"], &way[..]].concat());
    let bounded = peak(dir.path(), &[&["in.jsonl", "-o", "bounded", "--memory", "16MiB"], &way[..]].concat());
    assert!(read(&dir.path().join("whole")) == read(&dir.path().join("bounded")));
    let limit = 16 << 20;
    assert!(whole > few + 3 * limit, "the documents take {} bytes", whole - few);
    assert!(bounded < BESIDES + limit, "{bounded} bytes");
    assert!(bounded + 2 * limit < whole, "{bounded} and {whole} bytes");
}

#[test]
fn what_bounded_memory_cannot_do_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("in.jsonl"), lines(&corpus(2000, 33))).unwrap();
    let refused = |arguments: &[&str]| refused(dir.path(), arguments);
    let piped = refused(&["-", "--memory", "2GiB"]);
    assert!(piped.contains("--memory 2GiB reads the files twice, and - can be read only once"), "{piped}");
    for (size, why) in [("512KiB", "must be at least 1MiB"), ("2GB", "must be a whole number with KiB, MiB")] {
        let message = refused(&["in.jsonl", "--memory", size]);
        assert!(message.contains(why), "{message}");
    }
    let missing = refused(&["in.jsonl", "--memory", "1MiB", "-T", "no/such"]);
    assert!(missing.contains("cannot write a temporary file into no/such: "), "{missing}");
    let listed = hapax(&["dedup", "in.jsonl", "--memory", "1MiB"]).current_dir(dir.path()).output().unwrap();
    assert!(listed.status.code() == Some(2) && text(&listed.stderr).contains("--output <FILE>"), "{listed:?}");
}

/// A limit on the size of files is met in the same place as a full disk.
#[test]
fn a_full_disk_ends_a_run_with_a_message_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("in.jsonl"), lines(&corpus(3000, 34))).unwrap();
    let limit = ["sh", "-c", "ulimit -f 200 && exec \"$@\"", "sh"];
    let arguments = ["dedup", "in.jsonl", "-o", "out", "--memory", "1MiB"];
    let run = crate::support::command::by(&limit, &arguments).current_dir(dir.path()).output().unwrap();
    assert!(run.status.code() == Some(2), "{run:?}");
    assert!(text(&run.stderr).contains("cannot write a temporary file into .: "), "{}", text(&run.stderr));
    assert_eq!(names(dir.path()), ["in.jsonl"]);
}

#[test]
fn an_interrupted_run_leaves_no_temporary_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("in.jsonl"), lines(&corpus(40_000, 35))).unwrap();
    let arguments = ["dedup", "in.jsonl", "-o", "out", "--memory", "1MiB", "--clusters", "components"];
    let mut child = hapax(&arguments).current_dir(dir.path()).stderr(Stdio::piped()).spawn().unwrap();
    until("the output is begun", || names(dir.path()).iter().any(|name| name.starts_with(".hapax--output")));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let _ = child.wait().unwrap();
    let run = child.wait_with_output().unwrap();
    assert!(run.status.code() == Some(2) && text(&run.stderr).contains("interrupted; there is no output"), "{run:?}");
    assert_eq!(names(dir.path()), ["in.jsonl"]);
}
