//! Reads from the system how much memory this process may take, and how much it takes.

use std::fs;
use std::path::Path;

/// The directories of control groups, version 2 and version 1, and the files with their limits.
const GROUPS: [(&str, &[&str]); 3] = [
    ("/sys/fs/cgroup", &["memory.max", "memory.high"]),
    ("/sys/fs/cgroup/unified", &["memory.max", "memory.high"]),
    ("/sys/fs/cgroup/memory", &["memory.limit_in_bytes"]),
];

/// The largest amount of memory that the system grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Available {
    pub bytes: u64,
    pub source: Source,
}

/// The part of the system that limits the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Machine,
    ControlGroup,
}

/// Returns the smaller of the installed memory and the limit of the control group; `None` if neither is known.
pub fn available() -> Option<Available> {
    available_in(Path::new("/"))
}

/// Like [`available`], below another root directory.
fn available_in(root: &Path) -> Option<Available> {
    let read = |path: &str| fs::read_to_string(root.join(path.trim_start_matches('/'))).ok();
    let machine = read("/proc/meminfo").and_then(|text| kibibytes(&text, "MemTotal:"));
    let group = group_limit(&read("/proc/self/cgroup").unwrap_or_default(), |path| read(path));
    let of = |source| move |bytes| Available { bytes, source };
    machine.map(of(Source::Machine)).into_iter().chain(group.map(of(Source::ControlGroup))).min_by_key(|one| one.bytes)
}

/// Returns the anonymous memory of this process, in memory and in swap; `None` if the system does not report it.
pub(super) fn anonymous_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(kibibytes(&status, "RssAnon:")? + kibibytes(&status, "VmSwap:").unwrap_or(0))
}

/// Returns the value of a line such as `MemTotal: 24633348 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Returns the least limit of the process's control group and of the groups that contain it. `of` is the text of
/// `/proc/self/cgroup`. In a container, this text may name the group by its path outside the container, which does not
/// exist inside. In this case the container's own group is the root.
fn group_limit(of: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let mut paths = vec![""];
    for line in of.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        if controllers.is_empty() || controllers.split(',').any(|controller| controller == "memory") {
            let path = path.trim_end_matches('/');
            paths.extend(path.match_indices('/').map(|(at, _)| &path[..at]));
            paths.push(path);
        }
    }
    let files = GROUPS.iter().flat_map(|(directory, files)| files.iter().map(move |file| (directory, file)));
    let limits = files.flat_map(|(directory, file)| {
        paths
            .iter()
            .filter_map(|path| read(&format!("{directory}{path}/{file}"))?.trim().parse().ok())
            .collect::<Vec<u64>>()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the limit in a system with these files.
    fn limit(of: &str, files: &[(&str, &str)]) -> Option<u64> {
        group_limit(of, |path| files.iter().find(|(known, _)| *known == path).map(|(_, text)| (*text).to_owned()))
    }

    #[test]
    fn the_kernels_word_is_understood() {
        assert_eq!(kibibytes("MemTotal:       24633348 kB\nMemFree: 1 kB\n", "MemTotal:"), Some(24_633_348 * 1024));
        assert_eq!(kibibytes("MemFree: 1 kB\n", "MemTotal:"), None);
    }

    #[test]
    fn the_least_limit_of_nested_groups_holds() {
        let own = "0::/system.slice/hapax.service\n";
        let high = ("/sys/fs/cgroup/system.slice/hapax.service/memory.high", "1500\n");
        let max = ("/sys/fs/cgroup/system.slice/hapax.service/memory.max", "2000\n");
        let slice = ("/sys/fs/cgroup/system.slice/memory.max", "1000\n");
        assert_eq!(limit(own, &[max]), Some(2000));
        assert_eq!(limit(own, &[max, high]), Some(1500));
        assert_eq!(limit(own, &[max, high, slice]), Some(1000));
        assert_eq!(limit(own, &[("/sys/fs/cgroup/system.slice/hapax.service/memory.max", "max\n")]), None);
        assert_eq!(limit(own, &[("/sys/fs/cgroup/user.slice/memory.max", "1000\n")]), None);
    }

    #[test]
    fn version_1_and_containers_are_understood() {
        let own = "9:name=systemd:/\n4:memory,hugetlb:/docker/5f3a\n3:cpuset:/\n0::/\n";
        let outside = ("/sys/fs/cgroup/memory/docker/5f3a/memory.limit_in_bytes", "2000\n");
        let inside = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "3000\n");
        assert_eq!(limit(own, &[outside]), Some(2000));
        assert_eq!(limit(own, &[inside]), Some(3000), "the path outside does not exist in the container");
        assert_eq!(limit("0::/\n", &[("/sys/fs/cgroup/memory.max", "4000\n")]), Some(4000));
        assert_eq!(limit("0::/../..\n", &[("/sys/fs/cgroup/memory.max", "4000\n")]), Some(4000));
        assert_eq!(limit("", &[("/sys/fs/cgroup/memory.max", "4000\n")]), Some(4000), "without /proc/self/cgroup");
    }

    #[test]
    fn the_smaller_of_machine_and_group_is_available() {
        let root = std::env::temp_dir().join(format!("hapax-system-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(available_in(&root), None);
        write("proc/meminfo", "MemTotal: 1024 kB\n");
        assert_eq!(available_in(&root), Some(Available { bytes: 1 << 20, source: Source::Machine }));
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(available_in(&root), Some(Available { bytes: 1 << 20, source: Source::Machine }));
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "65536\n");
        assert_eq!(available_in(&root), Some(Available { bytes: 65536, source: Source::ControlGroup }));
        fs::remove_dir_all(&root).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_takes_some_memory() {
        let taken = anonymous_bytes().expect("Linux tells");
        assert!(taken > 64 * 1024, "{taken}");
    }
}
