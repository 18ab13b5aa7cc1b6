//! The log subscriber: words for people on a terminal, JSON lines for machines.
//! Comes in: a format and a filter. Goes out: lines on stderr; stdout is for data.
//! Must never know: a document's text or a key. Those who log give ids of requests, names and numbers.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, ParseError};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use super::bounded::Bounded;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// [`Format::Human`] when stderr is a terminal, else [`Format::Json`].
    Auto,
    Human,
    /// One JSON object a line, with the fields of its spans.
    Json,
}

/// Why logging could not begin.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// The filter does not parse.
    #[error("{0}")]
    Filter(#[from] ParseError),
    /// A word that would be taken for the name of a module, so that nothing else would be logged.
    #[error("{0:?} is not a level")]
    NotALevel(String),
    /// The process logs already.
    #[error("logging was begun before")]
    Installed,
}

/// Whether `level` is a filter: a level, or directives such as `info,hapax::store=debug`.
pub fn check_level(level: &str) -> Result<(), LogsError> {
    EnvFilter::builder().parse(level)?;
    // Directives of spans, in brackets, may have commas of their own.
    let mut bare = level.split(',').map(str::trim).filter(|part| !level.contains('[') && !part.contains(['=', ':']));
    match bare.find(|part| !part.is_empty() && part.parse::<LevelFilter>().is_err()) {
        Some(word) => Err(LogsError::NotALevel(word.to_owned())),
        None => Ok(()),
    }
}

/// Begins logging to stderr. Lines that repeat are left out (`bounded.rs`). Only the first call of a process succeeds.
pub fn install(format: Format, level: &str) -> Result<(), LogsError> {
    let filter = EnvFilter::builder().parse(level)?;
    let terminal = std::io::stderr().is_terminal();
    let layer = fmt::layer().with_writer(std::io::stderr);
    let layer = match format {
        Format::Human => layer.with_ansi(terminal).with_target(false).boxed(),
        Format::Auto if terminal => layer.with_target(false).boxed(),
        Format::Auto | Format::Json => layer.json().flatten_event(true).boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(layer).with(Bounded::start()).with(filter);
    subscriber.try_init().map_err(|_| LogsError::Installed)
}

/// Logs panics as errors. A formatted message may quote what it broke on, a piece of a document; so only messages
/// written in the source are logged, and the place.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload().downcast_ref::<&'static str>().copied().unwrap_or("message withheld");
        let thread = std::thread::current();
        tracing::error!(place, message, thread = thread.name().unwrap_or("unnamed"), "a bug: panic");
    }));
}

#[cfg(test)]
mod tests {
    use super::check_level;

    /// `warning` and `loud` parse as names of modules: a server with such a level logged nothing at all.
    #[test]
    fn levels_and_directives_are_filters() {
        assert!(check_level("info").is_ok());
        assert!(check_level("warn,hapax::store=debug").is_ok());
        assert!(check_level("off,hapax::store=debug").is_ok());
        assert!(check_level("").is_ok(), "errors alone, as the library has it");
        for refused in ["hapax=loud", "loud", "warning", "info,loud"] {
            assert!(check_level(refused).is_err(), "{refused}");
        }
    }
}
