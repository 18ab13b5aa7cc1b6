//! Compares the speed of signing with other libraries: `make bench-peers` builds them and prints the table.
//!
//! The other libraries run as child processes, so that gaoya can be built for this machine while hapax is built as it
//! is released. On a shared machine, absolute times drift, but ratios do not. In every round, each contender is
//! therefore measured between two measurements of hapax, and compared with their mean. `crates/peers/src/main.rs`
//! describes the protocol.

#![allow(clippy::print_stdout)]

#[allow(dead_code, unreachable_pub)]
mod inputs;

use std::error::Error;
use std::ffi::OsStr;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use hapax_core::{Pipeline, SignScratch, Signed, Simd, Spec};

/// The environment variable in which the Makefile names the program in Rust. This program must work.
const RUST: &str = "HAPAX_PEERS_RUST";
/// The environment variable for the programs in Python. They are left out if they do not work.
const PYTHON: &str = "HAPAX_PEERS_PYTHON";
const TEXTS: usize = 300;
const TEXT_BYTES: usize = 2048;
const ROUNDS: usize = 15;
const MEASURE_FOR: Duration = Duration::from_millis(100);
const PASSES_MIN: usize = 3;
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
const LINES_BEFORE_READY_MAX: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let peers = [RUST, PYTHON].map(|name| (name, std::env::var_os(name)));
    if peers.iter().all(|(_, program)| program.is_none()) {
        println!("peers: nothing to compare with; `make bench-peers` builds the others and runs this");
        return Ok(());
    }

    let english = inputs::KINDS.iter().find(|kind| kind.name == "english").expect("a kind of text");
    let texts = english.texts(TEXT_BYTES, TEXTS);
    let file = TextFile::write(&texts)?;
    let mut notes = Vec::new();
    let mut contenders = own_contenders(&texts)?;
    let reference = contenders.remove(0);
    let mut processes = Vec::new();
    for (name, program) in &peers {
        let started = program.as_deref().ok_or_else(|| format!("{name} is not set").into());
        let (peer, rows, told) = match started.and_then(|program| Peer::start(name, program, &file.0)) {
            Ok(started) => started,
            Err(error) if *name == PYTHON => {
                notes.push(format!("LEFT OUT: datasketch and rensa: {error}"));
                continue;
            }
            Err(error) => return Err(error),
        };
        let process = processes.len();
        let named = |(command, what)| Contender { what, measure: Measure::Peer { process, command } };
        contenders.extend(rows.into_iter().map(named));
        notes.extend(told);
        processes.push(peer);
    }

    let mut reference_ns = Vec::with_capacity(ROUNDS);
    let mut rows: Vec<Row> = contenders.iter().map(|contender| Row::new(&contender.what)).collect();
    for _ in 0..ROUNDS {
        let mut before = reference.run(&texts, &mut processes)?;
        for (contender, row) in contenders.iter().zip(&mut rows) {
            let ns = contender.run(&texts, &mut processes)?;
            let after = reference.run(&texts, &mut processes)?;
            row.ns.push(ns);
            row.ratios.push(ns / ((before + after) / 2.0));
            reference_ns.push(after);
            before = after;
        }
    }

    let reference = Row { ratios: vec![1.0], ns: reference_ns, what: reference.what };
    rows.insert(0, reference);
    print(rows, &texts, &notes);
    Ok(())
}

/// Something to measure.
struct Contender {
    what: String,
    measure: Measure,
}

enum Measure {
    Sign(Box<Pipeline>),
    Copy,
    Peer { process: usize, command: String },
}

/// Returns the sketches of hapax, the default first, and a pass that only reads and writes a text.
fn own_contenders(texts: &[String]) -> Result<Vec<Contender>, Box<dyn Error>> {
    let best = Simd::best();
    let default = "fss256x8";
    let own = [
        (default, best, format!("**hapax {default}**, the default, {}", best.name())),
        (default, Simd::PORTABLE, format!("hapax {default}, {}", Simd::PORTABLE.name())),
        ("fss128x8", best, "hapax fss128x8".to_owned()),
        ("classic128x8", best, "hapax classic128x8".to_owned()),
        ("oph128x8", best, "hapax oph128x8".to_owned()),
    ];
    let mut contenders = Vec::new();
    for (sketch, simd, what) in own {
        let spec = Spec::default().to_string().replace(default, sketch);
        let Spec::Text(spec) = Spec::parse(&spec)? else { unreachable!("a changed default") };
        let pipeline = Pipeline::with_simd(&spec, None, simd)?;
        let mut scratch = SignScratch::default();
        assert!(texts.iter().all(|text| pipeline.sign(&mut scratch, text).is_some()), "every text has tokens");
        contenders.push(Contender { what, measure: Measure::Sign(Box::new(pipeline)) });
    }
    contenders.push(Contender { what: "`str::to_ascii_lowercase`, a copy".to_owned(), measure: Measure::Copy });
    Ok(contenders)
}

impl Contender {
    /// Nanoseconds per document.
    fn run(&self, texts: &[String], processes: &mut [Peer]) -> Result<f64, Box<dyn Error>> {
        match &self.measure {
            Measure::Sign(pipeline) => {
                let (mut scratch, mut signed) = (SignScratch::default(), Signed::default());
                Ok(median_ns(texts, |text| {
                    pipeline.sign_into(&mut scratch, text, &mut signed);
                    black_box(&signed);
                }))
            }
            Measure::Copy => Ok(median_ns(texts, |text| {
                black_box(text.to_ascii_lowercase());
            })),
            Measure::Peer { process, command } => processes[*process].ask(command),
        }
    }
}

/// Returns the median time per text, in nanoseconds, over all passes that fit into the time. Peers report the same
/// figure.
fn median_ns(texts: &[String], mut work: impl FnMut(&str)) -> f64 {
    let mut passes = Vec::new();
    let start = Instant::now();
    while passes.len() < PASSES_MIN || start.elapsed() < MEASURE_FOR {
        let pass = Instant::now();
        texts.iter().for_each(|text| work(black_box(text)));
        passes.push(pass.elapsed().as_nanos() as f64 / texts.len() as f64);
    }
    median(&mut passes)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A file with the texts for the peers, deleted on drop.
struct TextFile(PathBuf);

impl TextFile {
    fn write(texts: &[String]) -> io::Result<Self> {
        let file = Self(std::env::temp_dir().join(format!("hapax-peers-{}.texts", std::process::id())));
        let mut bytes = Vec::new();
        for text in texts {
            bytes.extend_from_slice(&u32::try_from(text.len()).expect("texts are short").to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        std::fs::write(&file.0, bytes)?;
        Ok(file)
    }
}

impl Drop for TextFile {
    fn drop(&mut self) {
        // If this fails, the file stays until the system clears its temporary directory.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A process that measures another library.
struct Peer {
    child: Child,
    commands: ChildStdin,
    answers: Receiver<io::Result<String>>,
}

/// Commands, each with a description.
type PeerRows = Vec<(String, String)>;

impl Peer {
    /// Starts a process, and reads its commands and notes. `program` is one path, or an interpreter and a script
    /// separated as in `PATH`.
    fn start(name: &str, program: &OsStr, texts: &Path) -> Result<(Self, PeerRows, Vec<String>), Box<dyn Error>> {
        let mut words = std::env::split_paths(program);
        let mut command = Command::new(words.next().ok_or_else(|| format!("{name} is empty"))?);
        let spawned = command.args(words).arg(texts).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("{name}={}: {error}", program.display()))?;
        let commands = child.stdin.take().expect("stdin is piped");
        let out = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (sender, answers) = sync_channel(1);
        std::thread::spawn(move || out.lines().try_for_each(|line| sender.send(line).map_err(drop)));
        let peer = Self { child, commands, answers };

        let (mut rows, mut notes) = (Vec::new(), Vec::new());
        for _ in 0..LINES_BEFORE_READY_MAX {
            let line = peer.answer()?;
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["row", command, what] => rows.push((command.to_owned(), what.to_owned())),
                ["note", note] => notes.push(note.to_owned()),
                ["ready"] => return Ok((peer, rows, notes)),
                _ => return Err(format!("{name} said {line:?}").into()),
            }
        }
        Err(format!("{name} does not get ready").into())
    }

    fn ask(&mut self, command: &str) -> Result<f64, Box<dyn Error>> {
        writeln!(self.commands, "{command}")?;
        self.commands.flush()?;
        let line = self.answer()?;
        line.parse().map_err(|_| format!("{command:?} was answered {line:?}").into())
    }

    fn answer(&self) -> Result<String, Box<dyn Error>> {
        Ok(self.answers.recv_timeout(ANSWER_WITHIN).map_err(|error| format!("a peer does not answer: {error}"))??)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The process has no state to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The measurements of a contender.
struct Row {
    what: String,
    /// Nanoseconds per document.
    ns: Vec<f64>,
    /// The time of this contender divided by that of hapax, one ratio for each round.
    ratios: Vec<f64>,
}

impl Row {
    fn new(what: &str) -> Self {
        Self { what: what.to_owned(), ns: Vec::with_capacity(ROUNDS), ratios: Vec::with_capacity(ROUNDS) }
    }
}

fn print(rows: Vec<Row>, texts: &[String], notes: &[String]) {
    let bytes = texts.iter().map(String::len).sum::<usize>() as f64 / texts.len() as f64;
    println!("| what | us a document | MB/s | hapax is so many times as fast (min..max) |");
    println!("|---|--:|--:|--:|");
    for mut row in rows {
        let ns = median(&mut row.ns);
        let ratio = median(&mut row.ratios);
        let ratios = match (row.ratios.first(), row.ratios.last()) {
            (Some(min), Some(max)) if row.ratios.len() > 1 => format!("{ratio:.2} ({min:.2}..{max:.2})"),
            _ => "1".to_owned(),
        };
        println!("| {} | {:.2} | {:.0} | {ratios} |", row.what, ns / 1e3, bytes / ns * 1e3);
    }
    println!();
    println!("- `make bench-peers`: {} English texts of {bytes:.0} bytes, {ROUNDS} rounds, one thread", texts.len());
    println!("- {}", machine());
    println!("- hapax-core {}, built as it ships, with {}", env!("CARGO_PKG_VERSION"), rustc_version());
    for note in notes {
        println!("- {note}");
    }
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let family = match (field("cpu family"), field("model")) {
        (Some(family), Some(model)) => format!(" (family {family}, model {model})"),
        _ => String::new(),
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{model}{family}, {cores} cores")
}

fn rustc_version() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    output.map_or_else(|_| "an unknown rustc".to_owned(), |out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}
