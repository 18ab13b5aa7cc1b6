//! Divides the process's file descriptors between connections and the files of collections. Input: limits from the
//! settings. Output: the number of connections that fit. So even many clients cannot take the descriptors that a
//! collection needs. Without this limit, 200 clients under `ulimit -n 200` would leave no descriptor for a new
//! collection or a backup.

use crate::http;

/// The descriptors of one busy collection. It has 8 readers, the writer, the checkpointer, a backup and a scrub. Each
/// of these opens the database and its log. One more descriptor is for the index of the log.
const PER_COLLECTION: u64 = 25;
/// The descriptors for standard streams, listeners, the async runtime, locks, directories that are being synced, and
/// files of a backup.
const RESERVE: u64 = 48;
/// Connections get at least the limit divided by this number, even if the collections together would need more.
const CONNECTIONS_SHARE_MIN: u64 = 4;

/// Raises the process's limit as far as possible, and returns it. `None`: there is no limit, or it is not known.
#[cfg(target_os = "linux")]
pub fn raise_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, limit = current, "cannot raise the limit on file descriptors");
        return current;
    }
    maximum
}

/// Raises the process's limit as far as possible, and returns it. `None`: there is no limit, or it is not known.
#[cfg(not(target_os = "linux"))]
pub fn raise_limit() -> Option<u64> {
    None
}

/// Returns the number of connections for which there are descriptors, at most `connections_max`.
pub fn connections_that_fit(limit: Option<u64>, connections_max: usize, collections_max: usize, probes: bool) -> usize {
    let Some(limit) = limit else { return connections_max };
    let others = RESERVE
        + PER_COLLECTION * collections_max as u64
        + if probes { http::sockets_max(http::PROBE_CONNECTIONS_MAX) as u64 } else { 0 };
    let needed = others + http::sockets_max(connections_max) as u64;
    if needed <= limit {
        return connections_max;
    }
    let left = limit.saturating_sub(others).max(limit / CONNECTIONS_SHARE_MIN);
    let mut fit = connections_max.min(left as usize).max(1);
    while fit > 1 && http::sockets_max(fit) as u64 > left {
        fit -= 1;
    }
    tracing::warn!(
        limit,
        needed,
        connections_max,
        collections_max,
        connections = fit,
        "the limit on file descriptors (ulimit -n) is too low for server.connections_max and collections.max; \
         accepting fewer connections"
    );
    fit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_lowered_only_where_it_has_to_be() {
        assert_eq!(connections_that_fit(None, 4096, 64, true), 4096);
        assert_eq!(connections_that_fit(Some(1 << 20), 4096, 64, true), 4096);
        assert_eq!(connections_that_fit(Some(10), 4096, 64, true), 1, "there is always one");
        for limit in [200, 1024, 4096, 5000] {
            let fit = connections_that_fit(Some(limit), 4096, 64, true);
            let sockets = http::sockets_max(fit) as u64;
            assert!(fit < 4096 && sockets <= limit, "{limit}: {fit}");
            assert!(sockets + 8 >= limit / CONNECTIONS_SHARE_MIN, "{limit}: {fit}");
        }
        assert_eq!(connections_that_fit(Some(200), 8, 1, false), 8);
    }
}
