//! The threads that work on the documents of bulk and batch requests. They give way to the threads that serve
//! connections, so that a check does not have to wait for the lines of 64 streams. The system interrupts these threads
//! whenever a check is ready, and they yield after each document. If there is no other work, they use the whole
//! machine. Knows nothing of documents.

use std::future::Future;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use crate::cpu::{Nice, cores, give_way};

/// The threads. They end when this is dropped.
pub(super) struct StreamThreads(Option<Runtime>);

impl StreamThreads {
    /// Starts this many threads.
    pub(super) fn start(threads: usize) -> Self {
        let mut runtime = Builder::new_multi_thread();
        // The blocking threads do short disk reads. Their number is the same as for the threads that serve connections.
        runtime.worker_threads(threads).max_blocking_threads(cores() + 2);
        let runtime =
            runtime.enable_time().thread_name("hapax-stream").on_thread_start(|| give_way(Nice::Streams)).build();
        Self(Some(runtime.expect("the system can start some more threads")))
    }

    pub(super) fn handle(&self) -> &Handle {
        self.0.as_ref().expect("it is there until this is dropped").handle()
    }

    /// Runs a task on these threads. Tasks that it spawns run there too.
    pub(super) fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.handle().spawn(task)
    }
}

impl Drop for StreamThreads {
    /// The value may be dropped on a thread that must not block.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
