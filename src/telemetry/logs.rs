//! Sets up logging: readable lines on a terminal, JSON lines otherwise.
//! In: a format and a filter. Out: lines on stderr; stdout is for data. A log line must never contain the text of a
//! document or a key. It may contain ids of requests, names and numbers.

use std::cell::Cell;
use std::io::IsTerminal;

use tracing_subscriber::filter::{Directive, LevelFilter, ParseError};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use super::bounded::{AUDIT, Bounded};
use super::request::{Json, Readable};

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// [`Format::Human`] when stderr is a terminal, else [`Format::Json`].
    Auto,
    Human,
    /// One JSON object per line.
    Json,
}

/// The reason why logging could not start.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// The filter is invalid.
    #[error("{0}")]
    Filter(#[from] ParseError),
    /// One word is not a level. It would be taken for the name of a module, and nothing else would be logged.
    #[error("{0:?} is not a log level")]
    NotALevel(String),
    /// This process already logs.
    #[error("logging was already started")]
    Installed,
}

/// Checks that `level` is a filter: a level, or directives such as `info,hapax::store=debug`.
pub fn check_level(level: &str) -> Result<(), LogsError> {
    EnvFilter::builder().parse(level)?;
    // A directive for spans, in brackets, may contain commas.
    let mut bare = level.split(',').map(str::trim).filter(|part| !level.contains('[') && !part.contains(['=', ':']));
    match bare.find(|part| !part.is_empty() && part.parse::<LevelFilter>().is_err()) {
        Some(word) => Err(LogsError::NotALevel(word.to_owned())),
        None => Ok(()),
    }
}

fn audit_directive() -> Directive {
    format!("{AUDIT}=info").parse().expect("a target and a level")
}

/// Starts logging to stderr, without repeated lines (`bounded.rs`). Only the first call in a process succeeds.
pub fn install(format: Format, level: &str) -> Result<(), LogsError> {
    let filter = EnvFilter::builder().parse(level)?;
    // The lines that say which key did what are logged at every level, unless `level` has a directive for them.
    let filter = if level.contains(AUDIT) { filter } else { filter.add_directive(audit_directive()) };
    let terminal = std::io::stderr().is_terminal();
    let layer = fmt::layer().with_writer(std::io::stderr);
    let people = match format {
        Format::Human => true,
        Format::Auto => terminal,
        Format::Json => false,
    };
    let layer = match people {
        true => layer.with_ansi(terminal).with_target(false).fmt_fields(Readable::default()).boxed(),
        false => layer.json().event_format(Json(fmt::format().json().flatten_event(true))).boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(layer).with(Bounded::start()).with(filter);
    subscriber.try_init().map_err(|_| LogsError::Installed)
}

/// Logs panics as errors, with their place in the source. A formatted message may quote a piece of a document, so only
/// messages that are literals in the source are logged.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if EXPECTS_PANICS.get() {
            return;
        }
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload().downcast_ref::<&'static str>().copied().unwrap_or("message withheld");
        let thread = std::thread::current();
        tracing::error!(
            place,
            message,
            thread = thread.name().unwrap_or("unnamed"),
            "a thread panicked; this is a bug in hapax"
        );
    }));
}

thread_local! {
    static EXPECTS_PANICS: Cell<bool> = const { Cell::new(false) };
}

/// Does work whose panics are expected and caught, such as the work of a parser of damaged files. These panics are not
/// logged.
pub(crate) fn without_panic_logs<T>(work: impl FnOnce() -> T) -> T {
    EXPECTS_PANICS.set(true);
    let done = work();
    EXPECTS_PANICS.set(false);
    done
}

#[cfg(test)]
mod tests {
    use super::check_level;

    /// `warning` and `loud` parse as names of modules. A server with such a level once logged nothing.
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
