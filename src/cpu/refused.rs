//! The reasons why the pool refuses work.

/// The reason why work was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// All places in the queue are taken.
    #[error("the queue for long work is full: {queue_max} jobs wait for a processor; try again later")]
    Full {
        /// The number of places.
        queue_max: usize,
    },
    /// The work would wait too long.
    #[error(
        "there is more long work than the processors can do in time (`cpu.queue_delay_max_ms`); nothing was done for \
         this request; try again later"
    )]
    Late,
}
