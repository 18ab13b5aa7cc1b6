//! The machine on which a run was made, in one line.

/// Returns processor, number of processors, memory and kernel, as far as they can be read.
pub(super) fn describe() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    // `available_parallelism` is not used: with --pin it counts only some of the processors.
    let cpuinfo = read("/proc/cpuinfo");
    let processors = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let processor = field(&cpuinfo, "model name").unwrap_or_else(|| "unknown processor".to_owned());
    let memory = field(&read("/proc/meminfo"), "MemTotal").and_then(|text| {
        let kib: f64 = text.split_whitespace().next()?.parse().ok()?;
        Some(format!("{:.0} GiB", kib / f64::from(1 << 20)))
    });
    let kernel = read("/proc/sys/kernel/osrelease");
    let memory = memory.unwrap_or_else(|| "unknown memory".to_owned());
    format!("{processor}, {processors} processors, {memory}, Linux {}", kernel.trim())
}
