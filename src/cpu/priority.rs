//! The priorities of threads. The system prefers the threads that serve connections. These threads also run checks of
//! short texts to their end, and send refusals. On systems whose threads have no priorities, nothing changes.
//!
//! A thread that has just run may be woken before its next turn is due. Linux then chooses a thread again only at its
//! next tick, 4 to 10 ms later, unless the running thread ends its turn by itself. Therefore long work takes short
//! turns, and yields between them.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The shortest turn. A turn is the time for which a thread runs before it lets other threads run.
const TURN_MIN: Duration = Duration::from_micros(200);
/// The longest turn.
const TURN_MAX: Duration = Duration::from_millis(1);
/// Between these bounds, a turn lasts a third of the time for which other threads have just run. This is about the
/// share of a processor that a thread with the priority [`Nice::Streams`] gets.
const WAIT_PARTS: u32 = 3;

thread_local! {
    /// The time at which the turn of the thread ends.
    static TURN_ENDS: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Lowers the priority of the calling thread a little, and shortens its turns. The priority is not the lowest one,
/// because any busy program on the machine would then stop the streams.
#[cfg(target_os = "linux")]
pub fn give_way(nice: Nice) {
    // Without a process id, Linux changes only the calling thread. Linux allows every thread to lower its priority.
    let lowered = rustix::process::getpriority_process(None)
        .and_then(|before| rustix::process::setpriority_process(None, before + nice as i32));
    if let Err(error) = lowered {
        tracing::debug!(%error, "could not lower the priority of a thread");
    }
    run_promptly();
}

#[cfg(not(target_os = "linux"))]
pub fn give_way(_: Nice) {}

/// Asks the system to run the calling thread soon after it is woken, in short turns. A check takes less than a tenth of
/// a millisecond, but other threads run for a few milliseconds without a break. Linux supports this since 6.12.
pub fn run_promptly() {
    run_in_short_turns(Policy::Other);
}

/// Like [`run_promptly`], but when the calling thread is woken, it does not interrupt the running thread. Instead, it
/// waits until the running thread sleeps or yields, or until the next tick of the system. This is for a thread that is
/// woken a few thousand times a second. If it shares a processor with threads that serve connections, requests are
/// faster than with [`run_promptly`], and more writes share a sync.
pub fn run_without_interrupting() {
    run_in_short_turns(Policy::Batch);
}

enum Policy {
    Other,
    Batch,
}

#[cfg(target_os = "linux")]
fn run_in_short_turns(policy: Policy) {
    let nice = rustix::process::getpriority_process(None).unwrap_or(0);
    // SAFETY: all fields may be zero.
    let mut wanted: libc::sched_attr = unsafe { std::mem::zeroed() };
    wanted.size = size_of::<libc::sched_attr>() as u32;
    wanted.sched_policy = match policy {
        Policy::Other => libc::SCHED_OTHER as u32,
        Policy::Batch => libc::SCHED_BATCH as u32,
    };
    (wanted.sched_nice, wanted.sched_runtime) = (nice, TURN_MIN.as_nanos() as u64);
    // SAFETY: the call reads `size` bytes, and changes only the calling thread.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
    if set != 0 {
        tracing::debug!(error = %std::io::Error::last_os_error(), "could not shorten the time slices of a thread");
    }
}

#[cfg(not(target_os = "linux"))]
fn run_in_short_turns(_: Policy) {}

/// If the calling thread has run for a while, lets other threads run that are due before it. Long work calls this
/// several times a millisecond.
///
/// If other programs keep the processor busy, a thread that lets others run waits for a few milliseconds. When
/// threads did so after each document, a stream got 1.5 % of the processor. Therefore a thread runs longer after a
/// long wait.
pub fn let_others_run() {
    let now = Instant::now();
    if TURN_ENDS.get().is_some_and(|ends| now < ends) {
        return;
    }
    std::thread::yield_now();
    let back = Instant::now();
    TURN_ENDS.set(Some(back + ((back - now) / WAIT_PARTS).clamp(TURN_MIN, TURN_MAX)));
}

/// How far the priority of a thread is lowered. With each step, the thread gets about a quarter less time on a busy
/// processor.
#[derive(Clone, Copy, Debug)]
pub enum Nice {
    /// For long texts of single requests.
    LongTexts = 3,
    /// For streams of documents, which may last for hours; for new bandings and backups; and for rounds over all
    /// collections.
    Streams = 5,
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_interrupts_no_other_keeps_its_priority() {
        // SAFETY: without a process id, the call reads the policy of the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let set = |set: fn()| {
            let look = move || {
                set();
                (policy(), rustix::process::getpriority_process(None).unwrap())
            };
            std::thread::spawn(look).join().unwrap()
        };
        let nice = rustix::process::getpriority_process(None).unwrap();
        assert_eq!(set(run_promptly), (libc::SCHED_OTHER, nice));
        assert_eq!(set(run_without_interrupting), (libc::SCHED_BATCH, nice));
        assert_eq!(policy(), libc::SCHED_OTHER);
    }

    #[test]
    fn only_the_calling_thread_gives_way() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let before = priority();
        let lowered = std::thread::spawn(move || {
            give_way(Nice::Streams);
            priority()
        });
        assert_eq!(lowered.join().unwrap(), before + Nice::Streams as i32);
        assert_eq!(priority(), before);
    }
}
