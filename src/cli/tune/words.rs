//! A report -> text for people.

use std::io::{Result, Write};

use super::datasketch::Likeness;
use super::report::{CurveReport, Report, SampleReport, is_same_row};
use crate::cli::plural::plural;

/// Writes the report: facts, the table, and notes.
pub(super) fn write(out: &mut impl Write, report: &Report) -> Result<()> {
    write_banding(out, report)?;
    if let Some(sample) = &report.sample {
        write_sample(out, sample)?;
    }
    write_curve(out, &report.curve)?;
    if let Some(like) = &report.like_datasketch {
        write_datasketch(out, like, report)?;
    }
    write_table(out, report)?;
    for warning in &report.warnings {
        writeln!(out, "\nnote: {warning}")?;
    }
    Ok(())
}

fn write_banding(out: &mut impl Write, report: &Report) -> Result<()> {
    writeln!(out, "banding     {} bands of {} rows", report.banding.bands, report.banding.rows)?;
    let unused = match report.slots_unused {
        0 => String::new(),
        slots => format!(", {slots} of them in no band (they still count in the estimate)"),
    };
    writeln!(out, "signature   {} slots of {} bits{unused}", report.k, report.bits)?;
    if !is_same_row(report.s_hi, report.threshold) {
        writeln!(
            out,
            "recall      at {}: {:.4} proposed, {:.4} reported",
            report.s_hi, report.candidate_recall_at_s_hi, report.verdict_recall_at_s_hi
        )?;
    }
    writeln!(
        out,
        "recall      at the threshold {}: {:.4} proposed, {:.4} reported",
        report.threshold, report.candidate_recall_at_threshold, report.verdict_recall_at_threshold
    )?;
    let alike = match report.sample {
        Some(_) => format!("as similar as the sample (as with --s-bg {:.4})", report.s_bg),
        None => format!("of similarity {}", report.s_bg),
    };
    writeln!(
        out,
        "cost        {:.1} unrelated candidates per lookup, among {:.0} documents {alike}",
        report.background_candidates, report.documents
    )?;
    writeln!(
        out,
        "memory      {} bytes of the index for a document, {:.1} GB for all",
        report.index_bytes_per_document,
        report.index_bytes / 1e9
    )?;
    writeln!(
        out,
        "estimate    standard error {:.4} at the threshold {}",
        report.estimate_standard_error, report.threshold
    )
}

fn write_sample(out: &mut impl Write, sample: &SampleReport) -> Result<()> {
    writeln!(
        out,
        "sample      {} of {} document{}, with a median of {} distinct shingles",
        sample.documents,
        sample.documents_read,
        plural(sample.documents_read),
        sample.shingles_median
    )?;
    if sample.without_text > 0 {
        let (lines, s) = (sample.without_text, plural(sample.without_text));
        let are = if lines == 1 { "is" } else { "are" };
        writeln!(out, "            {lines} line{s} without a text {are} left out")?;
    }
    writeln!(
        out,
        "            {} pairs below the threshold; {} at or above it are left out",
        sample.pairs, sample.pairs_at_or_above_threshold
    )?;
    writeln!(
        out,
        "            similarity: mean {:.4}, 99 % of pairs at most {:.4}, 99.9 % at most {:.4}, largest {:.4}",
        sample.similarity_mean, sample.similarity_p99, sample.similarity_p999, sample.similarity_max
    )
}

fn write_curve(out: &mut impl Write, curve: &CurveReport) -> Result<()> {
    let steepest = match curve.steepest {
        Some(at) => format!("steepest at {at:.3}"),
        None => "a straight line".to_owned(),
    };
    writeln!(
        out,
        "curve       {steepest}; {:.3} wide, from 10 % proposed at {:.3} to 90 % at {:.3}",
        curve.width, curve.candidates_10_percent, curve.candidates_90_percent
    )?;
    writeln!(
        out,
        "            0.1 % proposed at {:.3}, 99 % at {:.3}",
        curve.candidates_0_1_percent, curve.candidates_99_percent
    )
}

fn write_datasketch(out: &mut impl Write, like: &Likeness, report: &Report) -> Result<()> {
    let Likeness { threshold, num_perm, bands, rows, .. } = *like;
    let s = plural(bands.into());
    writeln!(
        out,
        "datasketch  MinHashLSH(threshold={threshold}, num_perm={num_perm}) picks {bands} band{s} of {rows} rows"
    )?;
    if like.is_refused {
        return writeln!(out, "            and refuses the threshold, because MinHashLSH needs at least two bands");
    }
    let mut recalls = vec![(threshold, like.candidate_recall_at_threshold, like.chosen_recall_at_threshold)];
    if !is_same_row(threshold, report.s_hi) {
        recalls.push((report.s_hi, like.candidate_recall_at_s_hi, report.candidate_recall_at_s_hi));
    }
    for (at, theirs, ours) in recalls {
        writeln!(out, "            recall at {at}: {theirs:.4} proposed; {ours:.4} with the banding above")?;
    }
    writeln!(
        out,
        "            {:.1} unrelated candidates per lookup. It does not compare candidates: it returns them all",
        like.background_candidates
    )?;
    match like.fits {
        true => {
            writeln!(
                out,
                "            as a setting of a collection: \"banding\": {{\"bands\": {bands}, \"rows\": {rows}}}"
            )
        }
        false => writeln!(out, "            it needs {} slots, and these signatures have {}", bands * rows, report.k),
    }
}

fn write_table(out: &mut impl Write, report: &Report) -> Result<()> {
    writeln!(out)?;
    let simulated = report.table.iter().any(|row| row.measured.is_some());
    let header = if simulated { "   measured: proposed   reported" } else { "" };
    writeln!(out, "similarity   proposed   reported{header}")?;
    for row in &report.table {
        let measured = match (&row.measured, simulated) {
            (Some(rate), _) => format!("   {:>18.4}   {:>8.4}", rate.candidate, rate.verdict),
            (None, true) => " ".repeat(32),
            (None, false) => String::new(),
        };
        let mark = if is_same_row(row.jaccard, report.threshold) { "   <- threshold" } else { "" };
        writeln!(out, "{:>10.3}   {:>8.4}   {:>8.4}{measured}{mark}", row.jaccard, row.candidate, row.verdict)?;
    }
    Ok(())
}
