//! Divides the processors between the server and this program, so that neither takes time from the other.

use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors of both sides.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    pub(crate) server: Vec<usize>,
    pub(crate) client: Vec<usize>,
}

impl Split {
    /// Gives the first half of the processors that this process may use to the server.
    pub(crate) fn half() -> Result<Self> {
        // This is read once, because later this thread may be bound to only some of them.
        static ALL: OnceLock<Vec<usize>> = OnceLock::new();
        let now = allowed()?;
        let all = ALL.get_or_init(|| now);
        if all.len() < 2 {
            bail!("--pin needs two processors, and this process may use only {}", all.len());
        }
        let (server, client) = all.split_at(all.len() / 2);
        Ok(Self { server: server.to_vec(), client: client.to_vec() })
    }
}

/// Binds this thread, and the threads and processes that it starts from now on, to these processors.
pub(crate) fn bind(processors: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    processors.iter().for_each(|&processor| set.set(processor));
    sched_setaffinity(None, &set).context("cannot choose processors")
}

fn allowed() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("cannot read the processors of this process")?;
    Ok((0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect())
}
