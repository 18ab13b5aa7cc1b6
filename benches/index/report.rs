//! Measurements -> a table of all contenders, and the limits that must hold.

use std::process::Command;

use crate::contender::{Plan, STORED_PER_HOT, THREADS};
use crate::process::Figures;

/// The memory of the machine for which capacity is shown.
const MACHINE_BYTES: f64 = 24.0 * 1024.0 * 1024.0 * 1024.0;
const CPU_MAX_NS: f64 = 5e6;
const GROWTH_MAX: f64 = 2.5;
const HOT_MAX: f64 = 4.0;

/// The figures of one contender; times are in nanoseconds. A pass that the contender does not make is empty.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) insert: Figures,
    /// Two equal passes.
    pub(crate) grow: Vec<Figures>,
    pub(crate) shared: Figures,
    pub(crate) build: Figures,
    /// The times of a check by one thread and by two, one for each round.
    pub(crate) checks: [Vec<f64>; THREADS],
    /// The times in `checks`, divided by those of hapax; empty for hapax itself.
    pub(crate) ratios: [Vec<f64>; THREADS],
    pub(crate) latencies: Vec<Figures>,
    pub(crate) hot: Figures,
    /// The number of documents at or above the threshold that a check finds.
    pub(crate) matches: f64,
}

impl Measured {
    fn insert_ns(&self) -> Option<f64> {
        self.insert.get("insert_ns").copied()
    }

    fn shared_ns(&self) -> Option<f64> {
        self.shared.get("insert_ns").copied()
    }

    fn build_ns(&self) -> Option<f64> {
        self.build.get("build_ns").copied()
    }

    fn growth(&self) -> f64 {
        self.insert["late_ns"] / self.insert["early_ns"]
    }

    /// The greatest CPU time of an insert. Each insert was timed in two passes, and its shorter time counts.
    fn cpu_max(&self) -> f64 {
        let [first, second] = &self.grow[..] else { panic!("there are two passes") };
        let slow = first.iter().filter(|(name, _)| name.starts_with("slow."));
        let in_both = slow.filter_map(|(name, ns)| Some(ns.min(*second.get(name)?)));
        in_both.fold(0.0, f64::max)
    }

    fn check_p50(&self) -> f64 {
        self.latency("p50")
    }

    fn latency(&self, name: &str) -> f64 {
        spread(&self.latencies.iter().map(|figures| figures[name]).collect::<Vec<_>>())[1]
    }

    /// The 99th percentile with a hot bucket, divided by the one without.
    fn hot(&self, name: &str) -> f64 {
        self.hot[&format!("{name}_p99")] / self.hot["before_p99"]
    }
}

/// Limits that depend on the banding: bytes per document, and nanoseconds of the median check.
fn bars_of(plan: &Plan) -> Option<(f64, f64)> {
    match (plan.k, plan.bands, plan.rows) {
        (128, 21, 6) => Some((355.0, 3500.0)),
        (256, 31, 8) => Some((570.0, 5000.0)),
        _ => None,
    }
}

/// Prints the table. Returns whether the limits that do not depend on time hold.
pub(crate) fn print(plan: &Plan, own: &Measured, others: &[Measured]) -> bool {
    let Plan { documents, k, bands, rows, .. } = plan;
    println!("{} documents, k={k}, {bands} bands of {rows} rows\n", thousands(f64::from(*documents)));
    table(own, others, documents / STORED_PER_HOT);

    let bytes = own.insert["rss"];
    let fits = thousands(MACHINE_BYTES / bytes);
    println!("\nAt {bytes:.0} bytes each, 24 GiB hold {fits} documents.\n");
    let mut holds = true;
    if let Some((bytes_max, check_max)) = bars_of(plan) {
        holds = bar(&format!("at most {bytes_max} bytes a document"), bytes, bytes <= bytes_max);
        let p50 = own.check_p50();
        bar(&format!("median check under {:.1} us", check_max / 1e3), p50 / 1e3, p50 < check_max);
    }
    let cpu_max = own.cpu_max();
    bar("no insert over 5 ms of CPU time in both passes", cpu_max / 1e6, cpu_max <= CPU_MAX_NS);
    let early = thousands(f64::from(plan.early().start));
    bar(
        &format!("the last inserts at most {GROWTH_MAX} times those from {early} on"),
        own.growth(),
        own.growth() <= GROWTH_MAX,
    );
    bar(
        &format!("p99 of checks that hit a hot bucket at most {HOT_MAX} times that without"),
        own.hot("hit"),
        own.hot("hit") <= HOT_MAX,
    );
    for other in others {
        let figures = [
            ("insert", by(other.insert_ns(), own.insert_ns())),
            ("insert with 2 threads", by(other.shared_ns(), own.shared_ns())),
            ("build", by(other.build_ns(), own.build_ns())),
            ("check", Some(spread(&other.ratios[0])[1])),
            ("check with 2 threads", Some(spread(&other.ratios[1])[1])),
        ];
        for (what, ratio) in figures {
            if let Some(ratio) = ratio {
                bar(&format!("{what} as fast as {}", other.name), ratio, ratio >= 1.0);
            }
        }
        if other.name == "DashMap" {
            holds &= bar("finds what DashMap finds", own.matches, own.matches == other.matches);
        }
    }
    println!();
    holds
}

fn bar(what: &str, value: f64, holds: bool) -> bool {
    println!("- {}: {what} ({value:.2})", if holds { "holds" } else { "FAILS" });
    holds
}

fn table(own: &Measured, others: &[Measured], hot: u32) {
    let all: Vec<&Measured> = [own].into_iter().chain(others).collect();
    let row = |what: &str, cell: &dyn Fn(&Measured) -> String| {
        let cells: Vec<String> = all.iter().map(|measured| cell(measured)).collect();
        println!("| {what} | {} |", cells.join(" | "));
    };
    println!("| | {} |", all.iter().map(|measured| measured.name).collect::<Vec<_>>().join(" | "));
    println!("|---{}|", "|--:".repeat(all.len()));
    row("bytes a document, resident", &|one| {
        format!("{:.0}{}", one.insert["rss"], times(one, own, one.insert["rss"] / own.insert["rss"]))
    });
    row("the same at its highest", &|one| format!("{:.0}", one.insert["peak"]));
    let rate = |one: &Measured, ns: fn(&Measured) -> Option<f64>| match (ns(one), by(ns(one), ns(own))) {
        (Some(ns), Some(ratio)) => format!("{:.0}{}", 1e6 / ns, times(one, own, ratio)),
        _ => "-".to_owned(),
    };
    row("inserts, thousands a second of CPU", &|one| rate(one, Measured::insert_ns));
    row("inserts, 2 threads, thousands a second", &|one| rate(one, Measured::shared_ns));
    row("built at once, 2 threads", &|one| rate(one, Measured::build_ns));
    row("insert p50 / p99, us", &|one| format!("{} / {}", us(one.grow[0]["p50"]), us(one.grow[0]["p99"])));
    let passes =
        |one: &Measured, name: &str| one.grow.iter().map(|pass| us(pass[name])).collect::<Vec<_>>().join(" / ");
    row("insert max in each of two passes, us", &|one| passes(one, "max"));
    row("the same of CPU", &|one| passes(one, "cpu_max"));
    row("insert max in both passes, us of CPU", &|one| match one.cpu_max() {
        0.0 => "under 1,000".to_owned(),
        ns => us(ns),
    });
    row("last inserts by early ones", &|one| format!("{:.2}", one.growth()));
    for (threads, what) in
        ["checks, thousands a second of CPU", "checks, 2 threads, thousands a second"].into_iter().enumerate()
    {
        row(what, &|one| {
            let rate = 1e6 / spread(&one.checks[threads])[1];
            match &one.ratios[threads][..] {
                [] => format!("{rate:.0}"),
                ratios => {
                    let [min, median, max] = spread(ratios);
                    format!("{rate:.0} ({median:.2}x, {min:.2}..{max:.2})")
                }
            }
        });
    }
    row("check p50 / p99, us", &|one| format!("{} / {}", us(one.latency("p50")), us(one.latency("p99"))));
    row("check max, us", &|one| us(one.latencies.iter().map(|figures| figures["max"]).fold(0.0, f64::max)));
    let pair = |one: &Measured, name: &str| {
        format!("{} / {}", us(one.hot[&format!("{name}_p50")]), us(one.hot[&format!("{name}_p99")]))
    };
    row("checks with boilerplate, p50 / p99, us of CPU", &|one| pair(one, "before"));
    row(&format!("the same, {} documents in its bucket", thousands(f64::from(hot))), &|one| pair(one, "hit"));
    row("p99 of this by that", &|one| format!("{:.1}", one.hot("hit")));
    row("other checks then, p50 / p99, us of CPU", &|one| pair(one, "other"));
    row("matches a check", &|one| format!("{:.4}", one.matches));
}

/// Formats a ratio to hapax: how many times as large as that of hapax a figure is. hapax itself has no ratio.
fn times(one: &Measured, own: &Measured, ratio: f64) -> String {
    if one.name == own.name { String::new() } else { format!(" ({ratio:.2}x)") }
}

fn by(other: Option<f64>, own: Option<f64>) -> Option<f64> {
    Some(other? / own?)
}

fn us(ns: f64) -> String {
    let digits = if ns < 100_000.0 { 1 } else { 0 };
    format!("{:.digits$}", ns / 1e3)
}

/// The minimum, the median and the maximum.
fn spread(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1]]
}

fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).expect("ASCII")).collect();
    groups.join(",")
}

pub(crate) fn print_circumstances() {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let [model, family, number] =
        ["model name", "cpu family", "model"].map(|name| field(name).unwrap_or_else(|| "unknown".to_owned()));
    let cache = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size");
    let cache = cache.map_or_else(|_| "unknown".to_owned(), |size| size.trim().to_owned());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let rustc = Command::new(rustc).arg("--version").output();
    let rustc =
        rustc.map_or_else(|_| "an unknown rustc".into(), |out| String::from_utf8_lossy(&out.stdout).into_owned());
    println!("{model} (family {family}, model {number}), {cores} cores, L3 {cache}; {}", rustc.trim());
}
