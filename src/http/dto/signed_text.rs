//! The facts about the text from which a given signature was made, as JSON: `content_hash` and `shingles`.

use serde_json::value::RawValue;

use crate::http::caller::Caller;
use crate::http::error::Problem;
use crate::http::json::{self, Object};
use crate::keys::Scope;
use crate::types::{Content, SignedText};

/// The required form of a fingerprint and of a content hash, for error messages.
pub(super) const HEX_DIGITS: &str = "must be 32 lower-case hex digits";
/// An upper bound on the number of shingles, which no text in memory can reach.
const SHINGLES_MAX: u64 = 1 << 40;
const FIELDS: [&str; 2] = ["content_hash", "shingles"];

/// Adds the facts to a signature. The caller needs the scope `load` to send these facts, because with false facts a
/// document could count as a copy of any text. If the content is not a signature, these fields are refused. If
/// `ignores_others` is set, they are ignored instead.
pub(super) fn add(
    content: &mut Option<Content>,
    object: &mut Object<'_>,
    ignores_others: bool,
    caller: &Caller,
) -> Result<(), Problem> {
    let fields = FIELDS.map(|name| object.raw(name));
    let given = || fields.iter().zip(FIELDS).find(|(field, _)| field.is_some()).map(|(_, name)| name);
    match (content, given()) {
        (Some(Content::Signature { text, .. }), _) => {
            *text = signed_text(fields)?;
            text.map_or(Ok(()), |_| caller.require_for(Scope::Load, "a `content_hash`"))
        }
        // With `ignores_others` the fields are ignored, because corpora have fields of the same names.
        (_, Some(name)) if !ignores_others => Err(Problem::invalid(name, "is only allowed together with `signature`")),
        _ => Ok(()),
    }
}

fn signed_text(fields: [Option<&RawValue>; 2]) -> Result<Option<SignedText>, Problem> {
    let (hash, shingles) = match fields {
        [None, None] => return Ok(None),
        [Some(hash), Some(shingles)] => (json::string("content_hash", hash)?, shingles),
        [None, Some(_)] => return Err(Problem::invalid("content_hash", "is required together with `shingles`")),
        [Some(_), None] => return Err(Problem::invalid("shingles", "is required together with `content_hash`")),
    };
    let content = hash.parse().map_err(|_| Problem::invalid("content_hash", HEX_DIGITS))?;
    let shingles = serde_json::from_str(shingles.get()).ok().filter(|shingles| (1..=SHINGLES_MAX).contains(shingles));
    let shingles =
        shingles.ok_or_else(|| Problem::invalid("shingles", format!("must be an integer from 1 to {SHINGLES_MAX}")))?;
    Ok(Some(SignedText { content, shingles }))
}
