//! A verdict -> its JSON: the same bytes that serde makes. Used for answers about single documents, batches and bulk
//! lines. The members that nearly every verdict has are written here, because that is faster: an answer with ten
//! matches has a hundred of them. serde writes all other members.

use std::io::{self, Write};

use super::{MatchBody, VerdictBody};
use crate::http::dto::text::{number, string, time, value};

/// Writes a verdict as an object.
pub fn write(body: &VerdictBody, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{")?;
    members(body, out)?;
    out.write_all(b"}")
}

/// Writes the members of the object.
pub fn members(body: &VerdictBody, out: &mut impl Write) -> io::Result<()> {
    let VerdictBody {
        verdict,
        outcome,
        stored,
        collection,
        id,
        duplicate_of,
        similarity,
        representative,
        threshold,
        matches,
        omitted,
        candidates,
        complete,
        unread,
        shingles,
        previous,
        expected_recall,
        warning,
        explanation,
        page,
        revisit,
        elsewhere,
        collections,
    } = body;
    string(out, "\"verdict\":", verdict)?;
    string(out, ",\"outcome\":", outcome)?;
    out.write_all(if *stored { b",\"stored\":true" } else { b",\"stored\":false" })?;
    string(out, ",\"collection\":", collection.as_str())?;
    id.iter().try_for_each(|id| string(out, ",\"id\":", id.as_str()))?;
    duplicate_of.iter().try_for_each(|id| string(out, ",\"duplicate_of\":", id.as_str()))?;
    similarity.iter().try_for_each(|similarity| number(out, ",\"similarity\":", *similarity))?;
    representative.iter().try_for_each(|id| string(out, ",\"representative\":", id.as_str()))?;
    threshold.iter().try_for_each(|threshold| number(out, ",\"threshold\":", *threshold))?;
    matches.iter().try_for_each(|matches| array(out, ",\"matches\":[", matches))?;
    omitted.iter().try_for_each(|omitted| value(out, ",\"omitted\":", omitted))?;
    candidates.iter().try_for_each(|candidates| value(out, ",\"candidates\":", candidates))?;
    out.write_all(if *complete { b",\"complete\":true" } else { b",\"complete\":false" })?;
    unread.iter().try_for_each(|unread| value(out, ",\"unread\":", unread))?;
    shingles.iter().try_for_each(|shingles| value(out, ",\"shingles\":", shingles))?;
    previous.iter().try_for_each(|previous| value(out, ",\"previous\":", previous))?;
    expected_recall.iter().try_for_each(|recall| number(out, ",\"expected_recall\":", *recall))?;
    warning.iter().try_for_each(|warning| string(out, ",\"warning\":", warning))?;
    explanation.iter().try_for_each(|explanation| value(out, ",\"explanation\":", explanation))?;
    page.iter().try_for_each(|page| value(out, ",\"page\":", page))?;
    revisit.iter().try_for_each(|revisit| value(out, ",\"revisit\":", revisit))?;
    elsewhere.iter().try_for_each(|matches| array(out, ",\"elsewhere\":[", matches))?;
    collections.iter().try_for_each(|collections| value(out, ",\"collections\":", collections))
}

/// Writes an array of matches after its name.
fn array(out: &mut impl Write, name: &str, matches: &[MatchBody]) -> io::Result<()> {
    out.write_all(name.as_bytes())?;
    for (at, found) in matches.iter().enumerate() {
        object(found, out, if at == 0 { "{" } else { ",{" })?;
    }
    out.write_all(b"]")
}

fn object(found: &MatchBody, out: &mut impl Write, begin: &str) -> io::Result<()> {
    let MatchBody {
        collection,
        id,
        similarity,
        low,
        high,
        method,
        containment_in_match,
        containment_of_match,
        first_seen,
        metadata,
    } = found;
    out.write_all(begin.as_bytes())?;
    if let Some(collection) = collection {
        string(out, "\"collection\":", collection)?;
        out.write_all(b",")?;
    }
    string(out, "\"id\":", id.as_str())?;
    number(out, ",\"similarity\":", *similarity)?;
    number(out, ",\"low\":", *low)?;
    number(out, ",\"high\":", *high)?;
    string(out, ",\"method\":", method)?;
    containment_in_match.iter().try_for_each(|share| number(out, ",\"containment_in_match\":", *share))?;
    containment_of_match.iter().try_for_each(|share| number(out, ",\"containment_of_match\":", *share))?;
    time(out, ",\"first_seen\":", *first_seen)?;
    metadata.iter().try_for_each(|metadata| value(out, ",\"metadata\":", metadata))?;
    out.write_all(b"}")
}
