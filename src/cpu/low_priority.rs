//! Threads that give way: for streams of documents, which may last for hours and must not delay a check.

/// Lowers the priority of the calling thread a little, so that the system prefers the threads that answer checks. It is
/// not lowered further: at the lowest priority, any busy program of the machine would bring streams to a stop. Where
/// threads have no priorities of their own, nothing changes.
#[cfg(target_os = "linux")]
pub fn give_way() {
    const NICE: i32 = 3;
    // Without a process id, Linux changes the calling thread alone. It allows every thread to lower its priority.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
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
        let lowered = std::thread::spawn(move || {
            give_way();
            priority()
        });
        assert_eq!(lowered.join().unwrap(), 3);
        assert_eq!(priority(), before);
    }
}
