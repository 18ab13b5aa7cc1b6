//! How long each stage of a check or an insert takes, for the log, and for the client if it asks. The stages together
//! cover the time from the request's admission until its verdict is made or its write is durable.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::notes::Notes;
use crate::telemetry::request::current_trace;
use crate::telemetry::trace::{self, SpanIds, span_ended};
use crate::types::{LookupTimes, Verdict};

/// A stage of the work on one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The body arrives and is parsed.
    Extract,
    /// The text becomes a signature.
    Sign,
    /// The buckets of the index are read.
    Probe,
    /// The candidates are compared.
    Verify,
    /// All other work until the verdict is made: waiting for the id and for the decision lock, and reading ids.
    Decide,
    /// Other collections are asked about an inserted document.
    Elsewhere,
    /// The write becomes durable.
    Commit,
}

impl Stage {
    pub(super) const ALL: [Self; 7] =
        [Self::Extract, Self::Sign, Self::Probe, Self::Verify, Self::Decide, Self::Elsewhere, Self::Commit];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Extract => "extract",
            Self::Sign => "sign",
            Self::Probe => "probe",
            Self::Verify => "verify",
            Self::Decide => "decide",
            Self::Elsewhere => "elsewhere",
            Self::Commit => "commit",
        }
    }
}

/// The stages of one request so far.
pub struct Stages {
    began: Instant,
    last: Instant,
    took: [Duration; Stage::ALL.len()],
}

impl Stages {
    /// Records the end of a stage. The stage began when the last one ended.
    pub(super) fn end(&mut self, stage: Stage) {
        let now = Instant::now();
        self.took[stage as usize] = now - self.last;
        self.last = now;
    }

    /// Records that the verdict is made. Its lookup took `times`.
    pub(super) fn decided(&mut self, times: LookupTimes) {
        self.end(Stage::Decide);
        let (probe, verify) = (times.probe(), times.verify());
        let others = self.took[Stage::Decide as usize].saturating_sub(probe + verify);
        self.took[Stage::Probe as usize] = probe;
        self.took[Stage::Verify as usize] = verify;
        self.took[Stage::Decide as usize] = others;
    }

    /// Returns the stages that this request has had.
    pub(super) fn all(&self) -> impl Iterator<Item = (Stage, Duration)> {
        Stage::ALL.into_iter().zip(self.took).filter(|(_, took)| !took.is_zero())
    }

    /// Logs the stages as spans, if spans are logged.
    pub(super) fn log(&self, verdict: &Verdict) {
        if !trace::is_written() {
            return;
        }
        let Some(request) = current_trace() else { return };
        let mut at = trace::before(self.began.elapsed());
        for (stage, took) in self.all() {
            log(request.part(), stage, at, took, verdict);
            at += took;
        }
    }
}

fn log(ids: SpanIds, stage: Stage, at: std::time::SystemTime, took: Duration, verdict: &Verdict) {
    let name = stage.as_str();
    match stage {
        Stage::Extract | Stage::Elsewhere | Stage::Commit => span_ended!(ids, name, at, took),
        Stage::Sign => span_ended!(ids, name, at, took, shingles = verdict.shingles),
        Stage::Probe => span_ended!(ids, name, at, took, candidates = verdict.candidates, unread = verdict.unread),
        Stage::Verify => span_ended!(ids, name, at, took, candidates = verdict.candidates),
        Stage::Decide => span_ended!(
            ids,
            name,
            at,
            took,
            matches = verdict.matches.len(),
            verdict = verdict.kind.as_str(),
            outcome = verdict.outcome.as_str(),
        ),
    }
}

impl<S: Sync> FromRequestParts<S> for Stages {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let began = Notes::of(&parts.extensions).map_or_else(Instant::now, |notes| notes.deadline().began());
        Ok(Self { began, last: began, took: Default::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_follow_one_another_and_those_that_were_not_there_are_left_out() {
        let began = Instant::now();
        let mut stages = Stages { began, last: began, took: Default::default() };
        std::thread::sleep(Duration::from_millis(2));
        stages.end(Stage::Extract);
        std::thread::sleep(Duration::from_millis(1));
        stages.end(Stage::Commit);
        let all: Vec<_> = stages.all().collect();
        assert_eq!(all.iter().map(|(stage, _)| stage.as_str()).collect::<Vec<_>>(), ["extract", "commit"]);
        assert!(all[0].1 >= Duration::from_millis(2) && all[1].1 >= Duration::from_millis(1));
        assert_eq!(all.iter().map(|(_, took)| *took).sum::<Duration>(), stages.last - began);
    }
}
