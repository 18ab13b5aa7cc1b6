//! The speed of a restart: `make bench-boot` writes a collection of many documents and measures how long opening the
//! collection takes.
//!
//! A restart reads every signature, checks every checksum, and rebuilds the index. The file has just been written, so
//! most of the file is in the system's cache. Therefore the result includes almost no waiting for the disk.

#![allow(clippy::print_stdout)]

mod common;

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use common::{config, open};
use hapax::collections::Settings;
use hapax::store::{self, Change, Record, Store, StoredVerdict};
use hapax::types::{CollectionName, DocId, Seq, TimestampMs, VerdictKind};
use hapax_core::{Banding, ContentHash, Spec, SplitMix64, fmix64};

/// The number of documents in one transaction.
const BATCH: u64 = 10_000;

/// Measures how fast a collection is opened.
#[derive(Parser)]
struct Arguments {
    /// Documents in the collection
    #[arg(long, default_value_t = 5_000_000)]
    documents: u64,
    /// Slots of a signature: 128 slots have 21 bands of 6 rows, and any other number has 31 bands of 8 rows
    #[arg(long, default_value_t = 128)]
    slots: u32,
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { documents, slots, .. } = Arguments::parse();
    let spec = Spec::parse(&format!("hapax1;external:boot:{slots}x8"))?;
    let (bands, rows) = if slots == 128 { (21, 6) } else { (31, 8) };
    let settings = Settings::new(spec.clone(), Banding::new(bands, rows, spec.shape())?, 0.8);
    let dir = tempfile::tempdir()?;
    let config = config(dir.path(), settings, 0);

    // The service makes the file. Then documents are written to it directly, in transactions of thousands of documents,
    // because this takes only seconds.
    open(&config)?.close();
    let path = store::path_of(&dir.path().join("collections"), &CollectionName::default_collection());
    let (_store, mut writer, _) = Store::open(&path)?;
    let started = Instant::now();
    for first in (1..=documents).step_by(BATCH as usize) {
        let last = documents.min(first + BATCH - 1);
        let changes: Vec<Change> =
            (first..=last).map(|seq| Change::Insert(Arc::new(record(seq, spec.shape().bytes())))).collect();
        writer.commit(&changes, Seq(last))?;
    }
    writer.close()?;
    println!("{documents} documents of {slots} slots, {bands}x{rows}: written in {:.1?}", started.elapsed());

    let before = memory("VmRSS");
    let started = Instant::now();
    let collections = open(&config)?;
    let took = started.elapsed();
    let per_second = documents as f64 / took.as_secs_f64();
    println!("opened in {took:.2?}: {per_second:.0} documents a second");
    let [after, highest] = ["VmRSS", "VmHWM"].map(memory);
    let each = |kib: f64| (kib - before) * 1024.0 / documents as f64;
    println!("{:.0} bytes a document resident, {:.0} at the highest", each(after), each(highest));
    collections.close();
    Ok(())
}

/// Makes a document. Three documents in ten are similar to an earlier one.
fn record(seq: u64, bytes: usize) -> Record {
    let random = fmix64(seq);
    let of = if random % 10 < 3 { (random >> 8) % seq } else { seq };
    let mut words = SplitMix64::new(of);
    let mut signature: Vec<u8> = (0..bytes / 8).flat_map(|_| words.next_u64().to_le_bytes()).collect();
    for change in 0..bytes as u64 / 16 {
        let change = fmix64(seq ^ change << 40);
        signature[change as usize % bytes] = (change >> 32) as u8;
    }
    let now = TimestampMs(1_800_000_000_000);
    Record {
        seq: Seq(seq),
        id: DocId::new(format!("https://www.example.com/pages/{seq}")).expect("an id"),
        id_fingerprint: fmix64(seq ^ 7),
        signature,
        content: ContentHash(u128::from(random) << 64),
        given: true,
        linked: false,
        metadata: None,
        labels: None,
        capture: Default::default(),
        first_seen: now,
        id_first_seen: now,
        seen: now,
        cluster: Seq(0),
        shingles: None,
        page: None,
        verdict: StoredVerdict {
            kind: VerdictKind::Unique,
            duplicate_of: None,
            threshold: 0.8,
            candidates: 0,
            unread: 0,
            matches: Vec::new(),
        },
        payload: None,
    }
}

/// Reads a number of KiB from a line of `/proc/self/status`.
fn memory(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'));
    found.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(f64::NAN)
}
