//! The Prometheus recorder: buckets, upkeep, rendering.
//! Comes in: what `metrics` macros record. Goes out: the exposition text.
//! Must never know: routes, collections, or who asks.

use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;

use super::memory;
use super::names::{self, Kind};

/// How often histograms are drained. Without it each observation stays in memory until somebody scrapes.
pub const UPKEEP_PERIOD: Duration = Duration::from_secs(5);

/// Renders what was recorded. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
    process: Collector,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Makes the process's recorder. Only the first call of a process succeeds.
    pub fn install() -> Result<Self, BuildError> {
        let mut builder = PrometheusBuilder::new().with_recommended_naming(true);
        for metric in names::ALL {
            if let Kind::Histogram(buckets) = metric.kind {
                builder = builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), buckets)?;
            }
        }
        let handle = builder.install_recorder()?;
        names::describe_all();
        let process = Collector::default();
        process.describe();
        metrics::gauge!(names::BUILD_INFO, names::label::VERSION => env!("CARGO_PKG_VERSION")).set(1.0);
        if let Some(bytes) = memory::budget_bytes() {
            metrics::gauge!(names::MEMORY_BUDGET).set(bytes as f64);
        }
        Ok(Self { handle, process })
    }

    /// The exposition text, with the process's own figures read now.
    pub fn render(&self) -> String {
        self.process.collect();
        self.handle.render()
    }

    /// Drains histograms every [`UPKEEP_PERIOD`], for as long as it is polled.
    pub async fn upkeep(self) {
        let mut ticks = tokio::time::interval(UPKEEP_PERIOD);
        loop {
            ticks.tick().await;
            self.handle.run_upkeep();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_render_under_their_own_names() {
        let metrics = Metrics::install().expect("no other test installs a recorder");
        for metric in names::ALL {
            let labels: Vec<_> = metric.labels.iter().map(|&name| metrics::Label::new(name, "x")).collect();
            match metric.kind {
                Kind::Counter => metrics::counter!(metric.name, labels).increment(1),
                Kind::Gauge => metrics::gauge!(metric.name, labels).set(1.0),
                Kind::Histogram(_) => metrics::histogram!(metric.name, labels).record(1.0),
            }
        }
        let text = metrics.render();
        for metric in names::ALL {
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
}
