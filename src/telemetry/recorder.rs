//! The Prometheus recorder: series that appear and disappear, histograms with fixed buckets, and rendering.
//! `buckets.rs` has the bounds of the buckets.
//! In: the values that the macros of `metrics` record. Out: the text of `/metrics`. It must not know about routes or
//! collections, or about the code that requests the text.
//!
//! `metrics-exporter-prometheus` keeps every series until the process ends: creating and dropping 481 collections
//! increased `/metrics` from 35 KB to 4.6 MB. Here, a series with a label of [`label::PASSING`] exists only while the
//! label's value is admitted. If a handle outlives the thing that it measured, its values are not shown.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{Display, Formatter, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Label, Metadata, Recorder, SetRecorderError, SharedString,
    Unit,
};
use metrics_process::Collector;
use metrics_util::registry::{AtomicStorage, Registry, Storage};
use parking_lot::{Mutex, RwLock};

use super::buckets;
use super::names::{self, Kind, label};
use super::striped::{OneCopy, Striped, StripedCounter};

/// The series of the process's recorder; empty if none is installed, as in unit tests.
static INSTALLED: OnceLock<Arc<Series>> = OnceLock::new();

/// From now on, series with this value of a passing label are stored. Each call must be undone: either by its own call
/// of [`release`], or together with all others by a single call of [`forget`].
pub fn admit(label: &'static str, value: &str) {
    if let Some(series) = INSTALLED.get() {
        *series.admitted.write().entry((label, value.to_owned())).or_default() += 1;
    }
}

/// Undoes one call of [`admit`]. If all calls for this value are undone, the series with this value are removed.
pub fn release(label: &'static str, value: &str) {
    let Some(series) = INSTALLED.get() else { return };
    let mut admitted = series.admitted.write();
    if let Some(count) = admitted.get_mut(&(label, value.to_owned())) {
        *count -= 1;
        if *count == 0 {
            series.remove(&mut admitted, label, value);
        }
    }
}

/// Removes the series with this value of the label, even if handles to these series still exist.
pub fn forget(label: &'static str, value: &str) {
    if let Some(series) = INSTALLED.get() {
        series.remove(&mut series.admitted.write(), label, value);
    }
}

/// Removes the gauges of one metric with this value of the label, because the values of their other labels are
/// outdated.
pub fn withdraw(metric: &str, label: &'static str, value: &str) {
    if let Some(series) = INSTALLED.get() {
        let is_of = |key: &Key| key.name() == metric && key.labels().any(|of| of.key() == label && of.value() == value);
        series.registry.retain_gauges(|key, _| !is_of(key));
    }
}

/// Renders all metrics. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    series: Arc<Series>,
    process: Collector,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Installs the recorder of the process. Only the first call succeeds.
    pub fn install() -> Result<Self, SetRecorderError<impl Recorder>> {
        let series = Arc::new(Series::default());
        metrics::set_global_recorder(Arc::clone(&series))?;
        let _ = INSTALLED.set(Arc::clone(&series));
        names::describe_all();
        let process = Collector::default();
        process.describe();
        metrics::gauge!(names::BUILD_INFO, label::VERSION => env!("CARGO_PKG_VERSION")).set(1.0);
        metrics::counter!(names::LOG_LINES_LEFT_OUT).increment(0);
        Ok::<_, SetRecorderError<Arc<Series>>>(Self { series, process })
    }

    /// Returns the text of `/metrics`, with fresh numbers about the process.
    pub fn render(&self) -> String {
        self.process.collect();
        self.series.render()
    }
}

/// All series.
struct Series {
    registry: Registry<Key, Stored>,
    /// The admitted values of passing labels, and how often each was admitted. It is locked while a series is created,
    /// so that no series is created after its label was forgotten.
    admitted: RwLock<HashMap<(&'static str, String), usize>>,
    help: Mutex<HashMap<KeyName, SharedString>>,
}

impl Default for Series {
    fn default() -> Self {
        Self { registry: Registry::new(Stored), admitted: RwLock::default(), help: Mutex::default() }
    }
}

impl Series {
    fn remove(&self, admitted: &mut HashMap<(&'static str, String), usize>, label: &'static str, value: &str) {
        admitted.remove(&(label, value.to_owned()));
        let stays = |key: &Key| !key.labels().any(|of| of.key() == label && of.value() == value);
        self.registry.retain_counters(|key, _| stays(key));
        self.registry.retain_gauges(|key, _| stays(key));
        self.registry.retain_histograms(|key, _| stays(key));
    }

    /// Calls `make`, unless the key has a passing label whose value is not admitted.
    fn admitted<T>(&self, key: &Key, make: impl FnOnce() -> T) -> Option<T> {
        let passing = |of: &Label| label::PASSING.into_iter().find(|&name| name == of.key());
        if !key.labels().any(|of| passing(of).is_some()) {
            return Some(make());
        }
        let admitted = self.admitted.read();
        let known = |of: &Label| passing(of).is_none_or(|name| admitted.contains_key(&(name, of.value().to_owned())));
        key.labels().all(known).then(make)
    }

    fn render(&self) -> String {
        let mut families = BTreeMap::<String, (&'static str, Vec<String>)>::new();
        let mut add = |key: &Key, kind, lines: &dyn Fn(&mut String)| {
            let (_, texts) = families.entry(key.name().to_owned()).or_insert_with(|| (kind, Vec::new()));
            let mut text = String::new();
            lines(&mut text);
            texts.push(text);
        };
        self.registry.visit_counters(|key, counter| {
            add(key, "counter", &|text| line(text, key, "", None, counter.get()));
        });
        self.registry.visit_gauges(|key, gauge| {
            let value = f64::from_bits(gauge.load(Ordering::Relaxed));
            add(key, "gauge", &|text| line(text, key, "", None, Number(value)));
        });
        self.registry.visit_histograms(|key, buckets| add(key, "histogram", &|text| buckets.write(text, key)));
        let help = self.help.lock();
        let mut text = String::new();
        for (name, (kind, mut lines)) in families {
            if let Some(help) = help.get(name.as_str()) {
                let help = help.replace('\\', "\\\\").replace('\n', "\\n");
                let _ = writeln!(text, "# HELP {name} {help}");
            }
            let _ = writeln!(text, "# TYPE {name} {kind}");
            lines.sort_unstable();
            lines.iter().for_each(|line| text.push_str(line));
        }
        text
    }

    fn describe(&self, name: KeyName, help: SharedString) {
        self.help.lock().insert(name, help);
    }
}

impl Recorder for Series {
    fn describe_counter(&self, name: KeyName, _unit: Option<Unit>, help: SharedString) {
        self.describe(name, help);
    }

    fn describe_gauge(&self, name: KeyName, _unit: Option<Unit>, help: SharedString) {
        self.describe(name, help);
    }

    fn describe_histogram(&self, name: KeyName, _unit: Option<Unit>, help: SharedString) {
        self.describe(name, help);
    }

    fn register_counter(&self, key: &Key, _metadata: &Metadata<'_>) -> Counter {
        let make = || self.registry.get_or_create_counter(key, |counter| Counter::from_arc(Arc::clone(counter)));
        self.admitted(key, make).unwrap_or_else(Counter::noop)
    }

    fn register_gauge(&self, key: &Key, _metadata: &Metadata<'_>) -> Gauge {
        let make = || self.registry.get_or_create_gauge(key, |gauge| Gauge::from_arc(Arc::clone(gauge)));
        self.admitted(key, make).unwrap_or_else(Gauge::noop)
    }

    fn register_histogram(&self, key: &Key, _metadata: &Metadata<'_>) -> Histogram {
        let make = || self.registry.get_or_create_histogram(key, |buckets| Histogram::from_arc(Arc::clone(buckets)));
        self.admitted(key, make).unwrap_or_else(Histogram::noop)
    }
}

/// Creates the storage of a series.
struct Stored;

impl Storage<Key> for Stored {
    type Counter = Arc<StripedCounter>;
    type Gauge = Arc<AtomicU64>;
    type Histogram = Arc<Buckets>;

    fn counter(&self, _: &Key) -> Arc<StripedCounter> {
        Arc::default()
    }

    fn gauge(&self, key: &Key) -> Arc<AtomicU64> {
        AtomicStorage.gauge(key)
    }

    fn histogram(&self, key: &Key) -> Arc<Buckets> {
        let metric = names::all().find(|metric| metric.name == key.name());
        let bounds = match metric.map(|metric| metric.kind) {
            Some(Kind::Histogram(bounds)) => bounds,
            _ => buckets::SECONDS,
        };
        Arc::new(Buckets::new(bounds))
    }
}

/// A histogram with fixed buckets. Its size does not depend on the number of observations.
struct Buckets {
    bounds: &'static [f64],
    /// One count for each bound, one for values above all bounds, and the sum of the values as the bits of an `f64`.
    numbers: Striped,
}

impl Buckets {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, numbers: Striped::new(bounds.len() + 2) }
    }

    fn sum(&self) -> f64 {
        let sum = |copy: OneCopy<'_>| f64::from_bits(copy.at(self.bounds.len() + 1).load(Ordering::Relaxed));
        self.numbers.copies().map(sum).sum()
    }

    fn write(&self, text: &mut String, key: &Key) {
        let mut count = 0;
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        for (at, bound) in bounds.enumerate() {
            count += self.numbers.sum(at);
            line(text, key, "_bucket", Some(bound), count);
        }
        line(text, key, "_sum", None, Number(self.sum()));
        line(text, key, "_count", None, count);
    }
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        let numbers = self.numbers.here();
        numbers.at(at).fetch_add(1, Ordering::Relaxed);
        let add = |sum| Some((f64::from_bits(sum) + value).to_bits());
        let _ = numbers.at(self.bounds.len() + 1).fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }
}

/// A number as Prometheus writes it.
struct Number(f64);

impl Display for Number {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            value if value.is_nan() => f.write_str("NaN"),
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            value => Display::fmt(&value, f),
        }
    }
}

fn line(text: &mut String, key: &Key, suffix: &str, bound: Option<f64>, value: impl Display) {
    text.push_str(key.name());
    text.push_str(suffix);
    let mut open = '{';
    for label in key.labels() {
        let value = label.value().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(text, "{open}{}=\"{value}\"", label.key());
        open = ',';
    }
    if let Some(bound) = bound {
        let _ = write!(text, "{open}le=\"{}\"", Number(bound));
        open = ',';
    }
    text.push_str(if open == ',' { "} " } else { " " });
    let _ = writeln!(text, "{value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_render_under_their_own_names() {
        let metrics = Metrics::install().expect("no other test installs a recorder");
        label::PASSING.into_iter().for_each(|label| admit(label, "x"));
        for metric in names::all() {
            let labels: Vec<_> = metric.labels.iter().map(|&name| metrics::Label::new(name, "x")).collect();
            match metric.kind {
                Kind::Counter => metrics::counter!(metric.name, labels).increment(1),
                Kind::Gauge => metrics::gauge!(metric.name, labels).set(1.0),
                Kind::Histogram(_) => metrics::histogram!(metric.name, labels).record(1.0),
            }
        }
        let text = metrics.render();
        for metric in names::all() {
            let kind = match metric.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram(_) => "histogram",
            };
            let line = format!("# TYPE {} {kind}\n", metric.name);
            assert!(text.contains(&line), "missing {line}in\n{text}");
        }
        assert!(text.contains("process_resident_memory_bytes "), "{text}");
        assert!(text.contains("hapax_bucket_documents_bucket{collection=\"x\",le=\"4096\"} 1"), "{text}");
    }

    fn counter(series: &Series, labels: &[(&'static str, &'static str)]) -> Counter {
        let key = Key::from_parts("hits_total", labels);
        series.register_counter(&key, &Metadata::new("", metrics::Level::INFO, None))
    }

    fn histogram(series: &Series, value: &'static str) -> Histogram {
        let key = Key::from_parts("waits", &[(label::COLLECTION, value)]);
        series.register_histogram(&key, &Metadata::new("", metrics::Level::INFO, None))
    }

    #[test]
    fn forgotten_labels_leave_nothing_and_old_handles_bring_nothing_back() {
        let series = Series::default();
        let admit = |value: &str| series.admitted.write().insert((label::COLLECTION, value.to_owned()), 1);
        admit("a");
        admit("b");
        let old = [
            ("a", counter(&series, &[(label::COLLECTION, "a")])),
            ("b", counter(&series, &[(label::COLLECTION, "b")])),
        ];
        let old_waits = histogram(&series, "a");
        counter(&series, &[("route", "a")]).increment(3);
        old.iter().for_each(|(_, counter)| counter.increment(7));
        old_waits.record(1.0);
        series.remove(&mut series.admitted.write(), label::COLLECTION, "a");
        // A handle from before the removal still works, and a new handle does nothing. The values of neither are shown.
        old[0].1.increment(1);
        old_waits.record(1.0);
        counter(&series, &[(label::COLLECTION, "a")]).increment(1);
        histogram(&series, "a").record(1.0);
        let text = series.render();
        assert!(!text.contains("collection=\"a\"") && !text.contains("waits"), "{text}");
        assert!(
            text.contains("hits_total{collection=\"b\"} 7\n") && text.contains("hits_total{route=\"a\"} 3\n"),
            "{text}"
        );
        // A new collection of the same name begins at 0.
        admit("a");
        counter(&series, &[(label::COLLECTION, "a")]).increment(1);
        assert!(series.render().contains("hits_total{collection=\"a\"} 1\n"));
    }

    #[test]
    fn histograms_are_cumulative_and_labels_are_escaped() {
        let series = Series::default();
        let key = Key::from_parts("x", &[("l", "a\"b\\c\nd")]);
        let handle = series.register_histogram(&key, &Metadata::new("", metrics::Level::INFO, None));
        [0.000_01, 0.000_02, 0.3, 1000.0].into_iter().for_each(|value| handle.record(value));
        let text = series.render();
        let labels = r#"{l="a\"b\\c\nd""#;
        for line in [
            format!("x_bucket{labels},le=\"0.00001\"}} 1\n"),
            format!("x_bucket{labels},le=\"0.000025\"}} 2\n"),
            format!("x_bucket{labels},le=\"0.25\"}} 2\n"),
            format!("x_bucket{labels},le=\"10\"}} 3\n"),
            format!("x_bucket{labels},le=\"+Inf\"}} 4\n"),
            format!("x_sum{labels}}} 1000.30003\n"),
            format!("x_count{labels}}} 4\n"),
        ] {
            assert!(text.contains(&line), "{line} is not in {text}");
        }
    }
}
