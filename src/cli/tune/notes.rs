//! A report -> notes on results that often surprise people later.

use hapax_core::tuning::Targets;

use super::arguments::Args;
use super::report::Report;

/// A note is printed if one lookup would compare more unrelated documents than this.
const UNRELATED_MANY: f64 = 100.0;

/// Returns the notes. Each has a sentence or two.
pub(super) fn of(args: &Args, targets: &Targets, report: &Report) -> Vec<String> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let mut warnings = Vec::new();
    if report.verdict_recall_at_threshold < 0.9 {
        warnings.push(format!(
            "Only {} of the pairs exactly at the threshold ({}) are reported, because an estimate is too low about as \
             often as it is too high. Set the threshold a little below the similarity that you must not miss.",
            percent(report.verdict_recall_at_threshold),
            report.threshold
        ));
    }
    if report.candidate_recall_at_threshold < 0.9 {
        warnings.push(format!(
            "The bands propose only {} of the pairs at the threshold. More bands or fewer rows propose more.",
            percent(report.candidate_recall_at_threshold)
        ));
    }
    if report.candidate_recall_at_s_hi < targets.recall {
        warnings.push(format!(
            "The bands propose {} of the pairs at {}, less than the target of {}.",
            percent(report.candidate_recall_at_s_hi),
            targets.s_hi,
            percent(targets.recall)
        ));
    }
    if args.s_hi.is_some_and(|s_hi| s_hi < report.threshold) {
        warnings.push(format!(
            "--s-hi {} is below --threshold {}: pairs between the two are proposed, but not reported.",
            targets.s_hi, report.threshold
        ));
    }
    if report.background_candidates > args.candidates_max.unwrap_or(UNRELATED_MANY) {
        warnings.push(format!(
            "With {:.0} documents, each lookup compares about {:.0} unrelated ones. Use more rows or --candidates-max \
             to compare fewer.",
            targets.documents, report.background_candidates
        ));
    }
    let error = report.sample.as_ref().map_or(0.0, |sample| sample.background_candidates_error);
    if error > report.background_candidates / 4.0 {
        warnings.push(format!(
            "Few pairs of the sample make most of the {:.1} unrelated candidates, so this number may be wrong by {:.1} or \
             more. Give more documents, or try another --seed to see how it varies.",
            report.background_candidates,
            2.0 * error
        ));
    }
    warnings
}
