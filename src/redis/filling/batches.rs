//! Writes of a copy, in batches. In: commands on one key each. Several batches are on their way at a time, and each write
//! is waited for. A command may be sent again, so each must have the same effect the second time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinSet;

use super::super::cluster::{Call, Cluster, ClusterError, Packed, Request};
use super::super::failure::Failure;
use super::super::patience::{PAUSE, TRIES};
use super::error::FillError;
use super::note::Note;
use crate::verdicts::CollectionError;

/// A batch is sent when it has so many bytes or commands.
const BATCH_BYTES: usize = 256 << 10;
const BATCH_COMMANDS: usize = 512;
/// How many batches are on their way at a time.
const AT_ONCE: usize = 8;

pub(super) struct Batches {
    cluster: Cluster,
    note: Note,
    stop: Arc<AtomicBool>,
    commands: Vec<Request>,
    bytes: usize,
    sent: JoinSet<Result<bool, CollectionError>>,
    has_tried_again: bool,
}

impl Batches {
    /// No batch is sent after `stop` is set, or when the note was not renewed in time.
    pub(super) fn new(cluster: Cluster, note: Note, stop: Arc<AtomicBool>) -> Self {
        let sent = JoinSet::new();
        Self { cluster, note, stop, commands: Vec::new(), bytes: 0, sent, has_tried_again: false }
    }

    /// Returns an error if the copy must end.
    pub(super) fn look(&self) -> Result<(), FillError> {
        if self.stop.load(Ordering::Relaxed) { Err(FillError::Interrupted) } else { self.note.check() }
    }

    /// Adds a command. Waits while too many batches are on their way.
    pub(super) async fn push(&mut self, key: &[u8], command: Packed) -> Result<(), FillError> {
        self.bytes += command.size();
        let (slot, waits) = (Cluster::slot_of(key), self.cluster.acks() > 0);
        self.commands.push(Request { slot, calls: vec![Call::plain(command)], waits });
        if self.bytes < BATCH_BYTES && self.commands.len() < BATCH_COMMANDS { Ok(()) } else { self.send().await }
    }

    async fn send(&mut self) -> Result<(), FillError> {
        while self.sent.len() >= AT_ONCE {
            self.settle_one().await?;
        }
        self.look()?;
        self.bytes = 0;
        let commands = std::mem::take(&mut self.commands);
        self.sent.spawn(send(self.cluster.clone(), commands));
        Ok(())
    }

    /// Waits until enough replicas have all writes.
    pub(super) async fn settle(&mut self) -> Result<(), FillError> {
        self.send().await?;
        while !self.sent.is_empty() {
            self.settle_one().await?;
        }
        Ok(())
    }

    async fn settle_one(&mut self) -> Result<(), FillError> {
        let done = self.sent.join_next().await.expect("a batch is on its way");
        self.has_tried_again |= done.map_err(|_| CollectionError::closed())??;
        Ok(())
    }

    /// Returns whether a command was sent again. Its first copy may still be on its way.
    pub(super) fn has_tried_again(&self) -> bool {
        self.has_tried_again
    }
}

/// Sends commands until enough replicas have all of them. Returns whether some were tried again.
async fn send(cluster: Cluster, mut commands: Vec<Request>) -> Result<bool, CollectionError> {
    for tried in 1.. {
        let answers = cluster.run(commands.clone()).await;
        let (mut left, mut why) = (Vec::new(), None);
        for (command, answer) in commands.into_iter().zip(answers) {
            let failure = match answer {
                Ok(answer) if answer.acknowledged.is_none_or(|replicas| replicas >= cluster.acks()) => continue,
                Ok(_) => Failure::TooFewReplicas { acks: cluster.acks() },
                Err(error) => Failure::from(error),
            };
            left.push(command);
            why = Some(failure);
        }
        let Some(why) = why else { return Ok(tried > 1) };
        if tried == TRIES || !may_pass(&why) {
            return Err(why.told(false));
        }
        commands = left;
        tokio::time::sleep(PAUSE).await;
    }
    unreachable!("the last try returns")
}

fn may_pass(failure: &Failure) -> bool {
    match failure {
        Failure::Cluster(error) => matches!(
            error,
            ClusterError::Unreachable { .. }
                | ClusterError::Timeout { .. }
                | ClusterError::NotReady { .. }
                | ClusterError::NoOwner { .. }
                | ClusterError::QueueFull { .. }
        ),
        Failure::TooFewReplicas { .. } => true,
        Failure::Strange(_) => false,
    }
}
