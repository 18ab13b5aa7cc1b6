//! The progress of a command that reads files: a bar for people, and lines for logs.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::plural::plural;

/// The time between two lines of progress if stderr is not a terminal.
const WORDS_PERIOD: Duration = Duration::from_secs(10);

/// The time between two steps of the spinner and of the clock.
const TICK: Duration = Duration::from_millis(200);

/// Shows a bar of `length` steps on a terminal, and nothing in logs.
pub(in crate::cli) fn of_steps(length: u64, template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template).expect("the template is valid");
    let bar = ProgressBar::new(length).with_style(style);
    bar.enable_steady_tick(TICK);
    bar
}

/// Shows a bar for files of `total` bytes on a terminal. Otherwise prints a line every [`WORDS_PERIOD`], for logs.
pub(in crate::cli) fn of_files(total: Option<u64>) -> ProgressBar {
    let style = |template| ProgressStyle::with_template(template).expect("the template is valid");
    let terminal = std::io::stderr().is_terminal();
    let bar = match total {
        Some(total) => ProgressBar::new(total).with_style(style(
            "{bar:30.cyan/dim} {percent:>3} %  {msg}  {decimal_bytes_per_sec}  {elapsed} elapsed, {eta} left",
        )),
        None => ProgressBar::no_length()
            .with_style(style("{spinner} {decimal_bytes} read  {msg}  {decimal_bytes_per_sec}  {elapsed} elapsed")),
    };
    if terminal {
        bar.enable_steady_tick(TICK);
        return bar;
    }
    bar.set_draw_target(ProgressDrawTarget::hidden());
    let watched = bar.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(WORDS_PERIOD);
            if watched.is_finished() {
                return;
            }
            let share = watched.length().map(|total| {
                // The time that is left cannot be estimated before the first bytes are read.
                let left = Some(watched.position()).filter(|&position| position > 0).map(|_| watched.eta());
                let left = left.map_or_else(String::new, |eta| format!(" {} left,", HumanDuration(eta)));
                format!("{} %,{left} ", 100 * watched.position() / total.max(1))
            });
            let _ = writeln!(std::io::stderr(), "{}{}", share.unwrap_or_default(), watched.message());
        }
    });
    bar
}

/// Returns how many documents were read, and how fast.
pub(in crate::cli) fn documents(count: u64, begun: Instant) -> String {
    let per_second = count as f64 / begun.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
    format!("{} document{}, {}/s", HumanCount(count), plural(count), HumanCount(per_second as u64))
}
