//! Flips bits and cuts files at every kind of place. Each answer must stay the same, or become an error that names the
//! collection. It must never become a different answer.
//!
//! `HAPAX_FLIPS` sets the number of flipped bits in all states and files together. `HAPAX_CUT_EVERY` sets the distance
//! between two cuts, in bytes. `HAPAX_SEED` repeats a run.
#![allow(clippy::print_stdout)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::store::log::look::{self as log, Condition};

/// The last assigned position of the commit order.
const SEQS: u64 = 73;

fn with_payload(seq: u64) -> Record {
    let kind = if seq.is_multiple_of(2) { PayloadKind::Shingles } else { PayloadKind::Text };
    // Some payloads fit into the page of their row, and some have pages of their own.
    let len = if seq.is_multiple_of(7) { 9000 } else { seq * 13 };
    let bytes = (0..len).map(|at| (at * seq % 251) as u8).collect();
    let long = "a word and another ".repeat(seq as usize % 9);
    Record {
        metadata: Some(Metadata::new(format!(r#"{{"n":{seq},"note":"{long}"}}"#)).unwrap()),
        verdict: StoredVerdict {
            kind: VerdictKind::NearDuplicate,
            duplicate_of: Some(DocId::new(format!("https://a.example/{}", seq / 2)).unwrap()),
            matches: vec![StoredMatch { seq: Seq(seq / 2), matching: 200, exact: false, overlap: None }],
            ..record(seq).verdict
        },
        payload: Some(Arc::new(Payload { kind, shingles: seq * 10, bytes })),
        ..record(seq)
    }
}

fn insert(seq: u64) -> Change {
    Change::Insert(Arc::new(with_payload(seq)))
}

fn delete(seq: u64, target: u64) -> Change {
    Change::Delete { seq: Seq(seq), target: Seq(target), promoted: None }
}

fn touch(target: u64) -> Change {
    Change::Touch { target: Seq(target), seen: TimestampMs(1_800_000_000_000) }
}

/// The files of a collection at one moment, by the suffix of their names.
type Files = Vec<(&'static str, Vec<u8>)>;

/// A stored collection with changes of every kind.
struct Base {
    files: Files,
    answers: Answers,
    /// The answers before the last transaction, and the offset in the log at which that transaction begins.
    before: Option<(Answers, u64)>,
}

const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

fn files_of(path: &Path) -> Files {
    let named = |suffix: &'static str| {
        let bytes = fs::read(format!("{}{suffix}", path.display())).ok()?;
        Some((suffix, bytes))
    };
    SUFFIXES.into_iter().filter_map(named).collect()
}

fn write(files: &Files, path: &Path) {
    for suffix in SUFFIXES {
        let name = format!("{}{suffix}", path.display());
        match files.iter().find(|(known, _)| *known == suffix) {
            Some((_, bytes)) => fs::write(name, bytes).unwrap(),
            None => _ = fs::remove_file(name),
        }
    }
}

/// Makes a directory, in memory if possible: these tests are about the content of files, and sync a lot.
fn quick_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Returns three states of a collection. The first is closed. The second was left by a killed process, with a part of
/// the log moved into the database. The third was left in the same way, but its log had restarted and contains remains
/// of an older log.
fn bases() -> [Base; 3] {
    let (closed, open) = bases_of(false);
    let (_, restarted) = bases_of(true);
    [closed, open, restarted]
}

fn bases_of(restarts: bool) -> (Base, Base) {
    let dir = quick_dir();
    let path = path_of(dir.path(), &meta().name);
    let (_, mut writer) = Store::create(&path, &Meta { keep: Keep::Shingles, ..meta() }).unwrap();
    let commit = |writer: &mut Writer, changes: &[Change]| {
        let last = changes.iter().filter_map(Change::seq).max();
        writer.commit(changes, last.expect("a change with a place")).unwrap();
    };
    commit(&mut writer, &(1..=40).map(insert).collect::<Vec<_>>());
    commit(&mut writer, &[touch(3), touch(9), delete(41, 4)]);
    let replaces = Change::Replace { record: Arc::new(with_payload(42)), target: Seq(7), promoted: Some(Seq(10)) };
    commit(&mut writer, &[replaces]);
    writer.set_golden(&golden::pairs(80)).unwrap();
    writer.close().unwrap();
    let (_, mut writer, _) = Store::open(&path).unwrap();
    commit(&mut writer, &(43..=60).map(insert).collect::<Vec<_>>());
    commit(&mut writer, &[delete(61, 60), delete(62, 21), touch(22)]);
    writer.set_golden(&golden::pairs(60)).unwrap();
    writer.set_statistics(&jobs::statistics(30)).unwrap();
    // The reader needs old pages, so the rest of the log cannot be moved into the database.
    let reader = Connection::open(&path).unwrap();
    if !restarts {
        reader.execute_batch("BEGIN; SELECT count(*) FROM meta;").unwrap();
    }
    for seq in 63..=70 {
        commit(&mut writer, &[insert(seq), touch(seq - 20)]);
    }
    let log = checkpoint::run(writer.connection(), checkpoint::Mode::Passive).unwrap();
    assert_eq!(log.frames == log.checkpointed_frames, restarts);
    drop(reader);
    commit(&mut writer, &[insert(71), touch(70)]);
    let before = files_of(&path);
    let last_from = 32 + writer.log_bytes() / 4096 * (4096 + 24);
    commit(&mut writer, &[insert(72), delete(73, 65)]);
    let open = files_of(&path);
    assert_eq!(last_from < before[1].1.len() as u64, restarts, "{last_from} of {} bytes", before[1].1.len());
    writer.close().unwrap();
    let closed = files_of(&path);
    assert_eq!((closed.len(), open.len()), (1, 3));

    let (answers, before) = (answers_of(&closed), answers_of(&before));
    assert_eq!(answers, answers_of(&open));
    let refused: Vec<_> = answers.iter().filter(|(_, answer)| answer.is_err()).collect();
    assert!(refused.is_empty(), "{refused:?}");
    assert!(answers != before);
    (
        Base { files: closed, answers: answers.clone(), before: None },
        Base { files: open, answers, before: Some((before, last_from)) },
    )
}

fn answers_of(files: &Files) -> Answers {
    let dir = quick_dir();
    let path = path_of(dir.path(), &meta().name);
    write(files, &path);
    ask_all(&path).unwrap()
}

/// Each question, with its answer or the text of the error.
type Answers = Vec<(String, Result<String, String>)>;

/// Asks a store everything that it can answer. An error means that the collection does not open.
fn ask_all(path: &Path) -> Result<Answers> {
    let (store, _writer, opened) = Store::open(path)?;
    let rows = Mutex::new(BTreeMap::new());
    let visit = |row: SignatureRow<'_>| drop(rows.lock().unwrap().insert(row.seq, format!("{row:?}")));
    let totals = store.scan(1, visit, &AtomicU64::new(0))?;
    let rows = rows.into_inner().unwrap();
    let mut answers: Answers = vec![("opening".into(), Ok(format!("{opened:?} {totals:?} {rows:?}")))];
    let mut ask = |what: String, answer: Result<String>| {
        if let Err(error) = &answer {
            assert!(error.chain().contains("pages"), "{what}: {error} names no collection");
        }
        let of_record = what.starts_with("record") || what.starts_with("payload") || what.starts_with("head");
        if let (true, Err(StoreError::Damaged { record, .. })) = (of_record, &answer) {
            assert!(record.is_some(), "{what}: {answer:?} names no record");
        }
        answers.push((what, answer.map_err(|error| error.chain())));
    };
    let text = |answer: &dyn std::fmt::Debug| format!("{answer:?}");
    for seq in (1..=SEQS).map(Seq) {
        ask(format!("record {seq:?}"), store.record(seq).map(|answer| text(&answer)));
        ask(format!("head {seq:?}"), store.head(seq, true).map(|answer| text(&answer)));
        ask(format!("cluster {seq:?}"), store.cluster(ClusterStart::Of(seq), 9).map(|answer| text(&answer)));
        ask(format!("representative {seq:?}"), store.representative(seq).map(|answer| text(&answer)));
        ask(format!("page {seq:?}"), store.page(seq, 5).map(|answer| text(&answer)));
        let payload = store.payloads(&[seq], |_| Ok(()), |_, payload| Ok(payload));
        ask(format!("payload {seq:?}"), payload.map(|answer| text(&answer)));
    }
    ask("jobs".into(), store.jobs().map(|answer| text(&answer)));
    ask("statistics".into(), store.statistics().map(|answer| text(&answer)));
    ask("golden".into(), store.golden().map(|answer| text(&answer)));
    ask("all pages".into(), store.page(Seq(0), 1000).map(|answer| text(&answer)));
    ask("clusters".into(), store.clusters(ClusterPlace::default(), 1000).map(|answer| text(&answer)));
    ask(
        "cluster pages".into(),
        store.clusters(ClusterPlace { cluster: Seq(30), seq: Seq(31) }, 4).map(|answer| text(&answer)),
    );
    Ok(answers)
}

/// The damage done to one file.
#[derive(Clone, Debug)]
enum Damage {
    Flip { at: usize, bit: u8 },
    Cut { len: usize },
    Gone,
}

/// The outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Same,
    RefusedToOpen,
    RefusedSome,
    LastTransactionGone,
}

fn damaged(files: &Files, suffix: &str, damage: &Damage) -> Files {
    let mut files = files.clone();
    let at = files.iter().position(|(known, _)| *known == suffix).unwrap();
    match *damage {
        Damage::Flip { at: byte, bit } => files[at].1[byte] ^= 1 << bit,
        Damage::Cut { len } => files[at].1.truncate(len),
        Damage::Gone => drop(files.remove(at)),
    }
    files
}

fn judge(base: &Base, path: &Path, suffix: &str, damage: &Damage) -> Outcome {
    write(&damaged(&base.files, suffix, damage), path);
    let [log, shared] = ["-wal", "-shm"].map(|suffix| PathBuf::from(format!("{}{suffix}", path.display())));
    let looked = log::look(&log, &shared).unwrap();
    let answers = match ask_all(path) {
        Ok(answers) => answers,
        Err(error) => {
            assert!(error.chain().contains("pages"), "{error} names no collection");
            return Outcome::RefusedToOpen;
        }
    };
    let fits = |wanted: &Answers| {
        let mut pairs = answers.iter().zip(wanted);
        answers.len() == wanted.len() && pairs.all(|((_, told), (_, right))| told.is_err() || told == right)
    };
    if fits(&base.answers) {
        let refused = answers.iter().any(|(_, answer)| answer.is_err());
        return if refused { Outcome::RefusedSome } else { Outcome::Same };
    }
    let first = answers.iter().zip(&base.answers).find(|((_, told), (_, right))| told.is_ok() && told != right);
    let Some((before, from)) = &base.before else { panic!("another answer: {first:?}") };
    let reaches = match *damage {
        Damage::Flip { at, .. } => suffix == "-wal" && at as u64 >= *from,
        Damage::Cut { len } => suffix == "-wal" && len as u64 >= *from,
        Damage::Gone => false,
    };
    assert!(reaches && fits(before), "another answer: {first:?}");
    assert!(matches!(looked, Condition::Torn(_)), "the loss of the last transaction is not reported: {looked:?}");
    Outcome::LastTransactionGone
}

/// Judges all cases, with one thread per processor, and counts the outcomes.
fn judge_all(bases: &[Base], cases: &[(usize, &'static str, Damage)]) -> BTreeMap<Outcome, usize> {
    let next = AtomicUsize::new(0);
    let work = || {
        let dir = quick_dir();
        let path = path_of(dir.path(), &meta().name);
        let mut ends = Vec::new();
        while let Some((base, suffix, damage)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let judged = catch_unwind(AssertUnwindSafe(|| judge(&bases[*base], &path, suffix, damage)));
            ends.push(judged.unwrap_or_else(|_| panic!("state {base}, file {suffix:?}: {damage:?}")));
        }
        ends
    };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let ends: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ends.len(), cases.len());
    let mut counts = BTreeMap::new();
    ends.into_iter().for_each(|end| *counts.entry(end).or_default() += 1);
    counts
}

fn sweep(flips: usize, cut_every: usize) {
    let seed = std::env::var("HAPAX_SEED").map_or(0x6861_7061, |seed| seed.parse().unwrap());
    println!("HAPAX_SEED={seed} HAPAX_FLIPS={flips}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let bases = bases();
    // The number of flips is in proportion to the sizes of the files, with a minimum for small files.
    let weight = |bytes: usize| bytes.max(20_000);
    let files = || bases.iter().enumerate().flat_map(|(at, base)| base.files.iter().map(move |file| (at, file)));
    let all: usize = files().map(|(_, (_, bytes))| weight(bytes.len())).sum();
    let mut cases = Vec::new();
    for (base, (suffix, bytes)) in files() {
        println!("state {base}, file {suffix:?}: {} bytes", bytes.len());
        for _ in 0..(flips * weight(bytes.len())).div_ceil(all) {
            let damage = Damage::Flip { at: random.random_range(0..bytes.len()), bit: random.random_range(0..8) };
            cases.push((base, *suffix, damage));
        }
        cases.extend((0..bytes.len()).step_by(cut_every).map(|len| (base, *suffix, Damage::Cut { len })));
        if !suffix.is_empty() {
            cases.push((base, *suffix, Damage::Gone));
        }
    }
    // Flip every bit of the headers (in a short run, of every 20th byte), because the headers contain most of the data
    // that SQLite trusts without a checksum.
    for (base, suffix, bytes) in
        [(0, "", 0..100), (1, "", 0..100), (1, "-wal", 0..56), (2, "-wal", 0..56), (1, "-shm", 0..136)]
    {
        for at in bytes.step_by(if flips < 1000 { 20 } else { 1 }) {
            cases.extend((0..8).map(|bit| (base, suffix, Damage::Flip { at, bit })));
        }
    }
    let counts = judge_all(&bases, &cases);
    println!("{} cases: {counts:?}", cases.len());
    for outcome in [Outcome::Same, Outcome::RefusedToOpen, Outcome::RefusedSome] {
        assert!(counts.contains_key(&outcome), "no case ended with {outcome:?}: nothing was tested");
    }
}

#[test]
fn damage_is_refused_by_name_or_changes_no_answer() {
    sweep(60, 64 * 512);
}

/// The full sweep of `make corruption`.
#[test]
#[ignore = "takes minutes without optimisation"]
fn damage_anywhere_is_refused_by_name_or_changes_no_answer() {
    let set = |name, usual| std::env::var(name).map_or(usual, |set| set.parse().unwrap());
    sweep(set("HAPAX_FLIPS", 6000), set("HAPAX_CUT_EVERY", 512));
}

/// Flips every bit of the header of the frame that ends the second to last transaction. This transaction and the last
/// transaction were both acknowledged.
#[test]
fn a_flip_that_joins_two_transactions_is_no_torn_end() {
    let [_, base, _] = bases();
    let (_, from) = base.before.as_ref().unwrap();
    let header = *from as usize - (4096 + 24);
    let flips = (header..header + 24).flat_map(|at| (0..8).map(move |bit| Damage::Flip { at, bit }));
    let cases: Vec<_> = flips.map(|damage| (0, "-wal", damage)).collect();
    // The `-shm` file is left out, because it would also reveal the loss.
    let alone = Base { files: base.files.iter().filter(|(suffix, _)| *suffix != "-shm").cloned().collect(), ..base };
    let ends = judge_all(&[alone], &cases);
    assert_eq!(ends, BTreeMap::from([(Outcome::RefusedToOpen, 192)]));
}
