//! Jobs -> signatures in the order of the rows, on one thread or several, while other threads can run Python.
//!
//! The threads of a call end with the call. So a fork after the call copies nothing that needs these threads. The
//! calling thread takes the texts from Python, hands them to the other threads, and looks for signals at least ten
//! times a second. If there is only one thread, or little text, the calling thread signs by itself.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use hapax_core::{IllFormed, NotUtf8, Pipeline, SignScratch, Signed};
use pyo3::prelude::*;

use crate::boundary::panicked;
use crate::texts::{Fault, Job, Source, Text};

/// The most bytes of text that are taken from Python at a time. If other threads run Python, the calling thread may wait
/// for 5 ms until it can run Python again. Therefore it takes much text at a time.
const WINDOW_BYTES: usize = 16 << 20;
/// If no other thread runs Python, the calling thread takes about this much at a time: Python's strings are then still
/// in the cache of the processor when they are signed and given back. For less text, starting threads takes longer than
/// signing.
const ALONE_BYTES: usize = 256 << 10;
/// Other threads run Python if the calling thread must wait this long for it.
const BUSY_AFTER: Duration = Duration::from_micros(100);
/// The longest time between two looks for signals.
const SIGNALS_EVERY: Duration = Duration::from_millis(100);
/// A long text is signed in pieces of this size, with a look for signals between them.
const PIECE_BYTES: usize = 1 << 20;

/// The number of rows between two calls of `stop`. A call reads a clock, which takes as long as signing a hundred
/// bytes.
const STOP_EVERY: usize = 16;

/// The calling thread takes results when this many jobs are done. If it were woken for each job, it would often take the
/// processor from a thread that signs.
const DONE_MANY: usize = 16;

const NOT_UTF8: Fault = Fault("the column is damaged: the text is not UTF-8");

/// The result of signing a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Signed,
    /// The text has no token.
    Empty,
    /// There is no text.
    Null,
}

impl Outcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Empty => "empty",
            Self::Null => "null",
        }
    }
}

/// The results of some rows. Rows without a signature have zeros, and their outcome says so.
#[derive(Default)]
pub(crate) struct SignedRows {
    pub signatures: Vec<u8>,
    pub contents: Vec<u8>,
    pub shingles: Vec<u64>,
    pub outcomes: Vec<Outcome>,
}

impl SignedRows {
    fn with_room(rows: usize, signature_bytes: usize) -> Self {
        Self {
            signatures: Vec::with_capacity(rows * signature_bytes),
            contents: Vec::with_capacity(rows * 16),
            shingles: Vec::with_capacity(rows),
            outcomes: Vec::with_capacity(rows),
        }
    }

    pub(crate) fn append(&mut self, rows: &Self) {
        self.signatures.extend_from_slice(&rows.signatures);
        self.contents.extend_from_slice(&rows.contents);
        self.shingles.extend_from_slice(&rows.shingles);
        self.outcomes.extend_from_slice(&rows.outcomes);
    }

    fn push(&mut self, outcome: Outcome, signed: &Signed, bytes: usize) {
        match outcome {
            Outcome::Signed => {
                self.signatures.extend_from_slice(&signed.signature);
                self.contents.extend_from_slice(&signed.content.0.to_be_bytes());
                self.shingles.push(signed.shingles);
            }
            Outcome::Empty | Outcome::Null => {
                self.signatures.resize(self.signatures.len() + bytes, 0);
                self.contents.extend_from_slice(&[0; 16]);
                self.shingles.push(0);
            }
        }
        self.outcomes.push(outcome);
    }
}

/// The reason why a job has no result.
enum Stop {
    Cancelled,
    /// A row cannot be signed.
    Row(usize, Fault),
    Panicked(PyErr),
}

type Result<T> = std::result::Result<T, Stop>;
/// Takes results in the order of the rows.
pub(crate) type Sink<'a> = dyn FnMut(Python<'_>, SignedRows) -> PyResult<()> + 'a;

/// Signs a text. Calls `stop` between pieces, and returns `None` if `stop` returns true.
pub(crate) fn sign_text(
    pipeline: &Pipeline,
    scratch: &mut SignScratch,
    text: Text<'_>,
    signed: &mut Signed,
    stop: &mut dyn FnMut() -> bool,
) -> std::result::Result<Option<Outcome>, NotUtf8> {
    let outcome = |has_tokens| if has_tokens { Outcome::Signed } else { Outcome::Empty };
    let mut signer = pipeline.signer(scratch);
    match text {
        Text::WellFormed(mut text) => {
            while text.len() > PIECE_BYTES {
                let (piece, rest) = text.split_at(text.floor_char_boundary(PIECE_BYTES));
                signer.push(piece);
                text = rest;
                if stop() {
                    return Ok(None);
                }
            }
            signer.push(text);
            Ok(Some(outcome(signer.finish_into(signed))))
        }
        Text::Unchecked(bytes) => {
            for piece in bytes.chunks(PIECE_BYTES) {
                signer.push_bytes(piece, IllFormed::Refuse)?;
                if bytes.len() > PIECE_BYTES && stop() {
                    return Ok(None);
                }
            }
            Ok(Some(match signer.finish_bytes(IllFormed::Refuse)? {
                Some(made) => {
                    *signed = made;
                    Outcome::Signed
                }
                None => Outcome::Empty,
            }))
        }
    }
}

/// Signs the rows of a job.
fn sign_job(
    pipeline: &Pipeline,
    scratch: &mut SignScratch,
    job: &Job,
    stop: &mut dyn FnMut() -> bool,
) -> Result<SignedRows> {
    let bytes = pipeline.spec().shape.bytes();
    let (mut rows, mut signed) = (SignedRows::with_room(job.rows(), bytes), Signed::default());
    for row in 0..job.rows() {
        if row % STOP_EVERY == 0 && stop() {
            return Err(Stop::Cancelled);
        }
        let at = |fault| Stop::Row(job.first + row, fault);
        let outcome = match job.text(row).map_err(at)? {
            None => Outcome::Null,
            Some(text) => sign_text(pipeline, scratch, text, &mut signed, stop)
                .map_err(|_| at(NOT_UTF8))?
                .ok_or(Stop::Cancelled)?,
        };
        rows.push(outcome, &signed, bytes);
    }
    Ok(rows)
}

fn sign_safely(
    pipeline: &Pipeline,
    scratch: &mut SignScratch,
    job: &Job,
    stop: &mut dyn FnMut() -> bool,
) -> Result<SignedRows> {
    let work = AssertUnwindSafe(|| sign_job(pipeline, scratch, job, stop));
    catch_unwind(work).unwrap_or_else(|panic| {
        *scratch = SignScratch::default();
        Err(Stop::Panicked(panicked(&*panic)))
    })
}

/// Signs all texts of a source on this many threads.
pub(crate) fn sign_all(
    py: Python<'_>,
    pipeline: &Pipeline,
    source: &mut Source,
    threads: usize,
    sink: &mut Sink<'_>,
) -> PyResult<()> {
    let mut jobs = VecDeque::new();
    // The other threads begin as soon as there is enough text for them. More text is taken while they sign.
    let ends = fill(py, source, &mut jobs, ALONE_BYTES)?;
    if threads == 1 || ends {
        alone(py, pipeline, source, jobs, sink)
    } else {
        together(py, pipeline, source, jobs, threads, sink)
    }
}

/// Takes jobs from a source until they have this many bytes. Returns whether the source has ended.
fn fill(py: Python<'_>, source: &mut Source, jobs: &mut VecDeque<Job>, bytes_min: usize) -> PyResult<bool> {
    let mut bytes = 0;
    while bytes < bytes_min {
        let Some(job) = source.next(py)? else { return Ok(true) };
        bytes += job.bytes;
        jobs.push_back(job);
    }
    Ok(false)
}

/// Checks for signals from time to time, on a thread that is detached from the interpreter.
#[derive(Default)]
pub(crate) struct Signals {
    looked: Option<Instant>,
    raised: Option<PyErr>,
}

impl Signals {
    /// Returns whether a signal handler has raised an exception.
    pub(crate) fn stop(&mut self) -> bool {
        if self.raised.is_some() {
            return true;
        }
        let looked = *self.looked.get_or_insert_with(Instant::now);
        if looked.elapsed() < SIGNALS_EVERY {
            return false;
        }
        self.looked = Some(Instant::now());
        self.raised = Python::attach(|py| py.check_signals()).err();
        self.raised.is_some()
    }

    pub(crate) fn result(self) -> PyResult<()> {
        self.raised.map_or(Ok(()), Err)
    }
}

fn alone(
    py: Python<'_>,
    pipeline: &Pipeline,
    source: &mut Source,
    mut jobs: VecDeque<Job>,
    sink: &mut Sink<'_>,
) -> PyResult<()> {
    let (mut scratch, mut window) = (SignScratch::default(), ALONE_BYTES);
    loop {
        let (made, signals, signed) = py.detach(|| {
            let mut signals = Signals::default();
            let made: Vec<_> =
                jobs.iter().map(|job| sign_safely(pipeline, &mut scratch, job, &mut || signals.stop())).collect();
            (made, signals, Instant::now())
        });
        if signed.elapsed() > BUSY_AFTER {
            window = (window * 4).min(WINDOW_BYTES);
        }
        signals.result()?;
        for rows in made {
            sink(py, rows.map_err(|stop| exception(stop, source))?)?;
        }
        jobs.clear();
        py.check_signals()?;
        fill(py, source, &mut jobs, window)?;
        if jobs.is_empty() {
            return Ok(());
        }
    }
}

fn exception(stop: Stop, source: &Source) -> PyErr {
    match stop {
        Stop::Row(row, fault) => source.refused(row, &fault),
        Stop::Panicked(error) => error,
        // The caller never sees this: a call that cancels its jobs raises another exception.
        Stop::Cancelled => pyo3::exceptions::PyKeyboardInterrupt::new_err(()),
    }
}

/// The jobs of one call, which the calling thread hands to the other threads.
#[derive(Default)]
struct Desk {
    state: Mutex<State>,
    /// Notified if there are jobs, or if no further jobs will come.
    work: Condvar,
    /// Notified if the calling thread has something to do.
    news: Condvar,
    cancelled: AtomicBool,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(u64, Job)>,
    waiting_bytes: usize,
    /// The bytes of the jobs that wait, that run, and that are done but not yet taken.
    held_bytes: usize,
    running: usize,
    done: Vec<(u64, Job, Result<SignedRows>)>,
    /// Whether no further jobs will come.
    is_last: bool,
    is_closed: bool,
}

impl State {
    /// Returns whether the calling thread has nothing to do. It has something to do if many jobs are done. If no further
    /// jobs will come, it also has something to do if all jobs are done. If jobs will come, it also has something to do
    /// if at most half of a window of text waits for a thread, and if there is room for a job or a job is done.
    fn is_busy(&self) -> bool {
        let is_quiet = self.done.len() < DONE_MANY;
        if self.is_last {
            return is_quiet && (self.running > 0 || !self.waiting.is_empty());
        }
        let is_full = self.held_bytes >= WINDOW_BYTES && self.done.is_empty();
        is_full || is_quiet && self.waiting_bytes > WINDOW_BYTES / 2
    }
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn put(&self, number: u64, job: Job) {
        let mut state = self.state();
        state.waiting_bytes += job.bytes;
        state.held_bytes += job.bytes;
        state.waiting.push_back((number, job));
        self.work.notify_one();
    }

    fn has_room(&self) -> bool {
        self.state().held_bytes < WINDOW_BYTES
    }

    fn take_done(&self) -> Vec<(u64, Job, Result<SignedRows>)> {
        let mut state = self.state();
        let done = std::mem::take(&mut state.done);
        state.held_bytes -= done.iter().map(|(_, job, _)| job.bytes).sum::<usize>();
        done
    }

    fn close(&self, cancel: bool) {
        self.cancelled.fetch_or(cancel, Ordering::Relaxed);
        self.state().is_closed = true;
        self.work.notify_all();
    }

    /// Waits until the calling thread has something to do, for at most [`SIGNALS_EVERY`]. If `is_last`, no further jobs
    /// will come.
    fn wait(&self, is_last: bool) {
        let mut state = self.state();
        state.is_last = is_last;
        drop(self.news.wait_timeout_while(state, SIGNALS_EVERY, |state| state.is_busy()));
    }

    /// Does jobs until no further jobs will come.
    fn serve(&self, pipeline: &Pipeline) {
        let mut scratch = SignScratch::default();
        let mut stop = || self.cancelled.load(Ordering::Relaxed);
        loop {
            let idle = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
            let state = self.work.wait_while(self.state(), idle);
            let mut state = state.unwrap_or_else(|poisoned| poisoned.into_inner());
            let Some((number, job)) = state.waiting.pop_front() else { return };
            state.waiting_bytes -= job.bytes;
            state.running += 1;
            drop(state);
            let rows = sign_safely(pipeline, &mut scratch, &job, &mut stop);
            let mut state = self.state();
            state.running -= 1;
            state.done.push((number, job, rows));
            if !state.is_busy() {
                self.news.notify_one();
            }
        }
    }
}

fn together(
    py: Python<'_>,
    pipeline: &Pipeline,
    source: &mut Source,
    jobs: VecDeque<Job>,
    threads: usize,
    sink: &mut Sink<'_>,
) -> PyResult<()> {
    let desk = Desk::default();
    let mut handed = 0;
    for job in jobs {
        desk.put(handed, job);
        handed += 1;
    }
    thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..threads {
            let thread = thread::Builder::new().name("pyhapax".to_owned());
            started += usize::from(thread.spawn_scoped(scope, || desk.serve(pipeline)).is_ok());
        }
        let result = if started > 0 {
            conduct(py, &desk, handed, source, sink)
        } else {
            Err(pyo3::exceptions::PyRuntimeError::new_err("no thread could be started; use threads=1"))
        };
        desk.close(result.is_err());
        result
    })
}

/// Hands jobs to the threads and their results to the sink.
fn conduct(py: Python<'_>, desk: &Desk, mut handed: u64, source: &mut Source, sink: &mut Sink<'_>) -> PyResult<()> {
    let (mut ready, mut given, mut ends) = (BTreeMap::new(), 0, false);
    loop {
        let begun = Instant::now();
        while !ends && desk.has_room() && begun.elapsed() < SIGNALS_EVERY {
            match source.next(py)? {
                Some(job) => {
                    desk.put(handed, job);
                    handed += 1;
                }
                None => ends = true,
            }
        }
        // The jobs are dropped here, because this thread is attached to the interpreter that owns their texts.
        ready.extend(desk.take_done().into_iter().map(|(number, _, rows)| (number, rows)));
        while let Some(rows) = ready.remove(&given) {
            sink(py, rows.map_err(|stop| exception(stop, source))?)?;
            given += 1;
        }
        if ends && given == handed {
            return Ok(());
        }
        py.check_signals()?;
        py.detach(|| desk.wait(ends));
    }
}
