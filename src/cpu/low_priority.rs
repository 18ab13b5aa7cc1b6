//! Threads that give way: for streams of documents, which may last for hours and must not delay a check.

/// Gives the calling thread the lowest priority. The system then runs it only if no other thread of this machine needs
/// the processor, except for a few percent. Where threads have no priorities of their own, nothing changes.
#[cfg(target_os = "linux")]
pub fn give_way() {
    const LOWEST: i32 = 19;
    // Without a process id, Linux changes the calling thread alone. It allows every thread to lower its priority.
    if let Err(error) = rustix::process::setpriority_process(None, LOWEST) {
        tracing::debug!(%error, "a thread keeps its priority");
    }
}

#[cfg(not(target_os = "linux"))]
pub fn give_way() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_the_calling_thread_gives_way() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let before = priority();
        let lowest = std::thread::spawn(move || {
            give_way();
            priority()
        });
        assert_eq!(lowest.join().unwrap(), 19);
        assert_eq!(priority(), before);
    }
}
