//! The routes and the parameters for keys that see only verdicts (`scores = "verdict"`). Only the listed routes and
//! parameters are allowed: a route or parameter that is added later is refused until it is listed too. A parameter with
//! its default value changes nothing and is allowed. `dto/verdict.rs` decides which fields such a key sees.

use super::caller::Caller;
use super::error::{Code, Problem};
use super::options::is_default;
use super::query::Query;
use super::routes::Route;
use crate::keys::Scores;

/// The allowed parameters. `threshold` is not allowed: a client that may choose it can find the similarity by binary
/// search.
const PARAMETERS: [&str; 9] =
    ["id", "label", "on_duplicate", "on_existing", "invalid", "op", "extra", "duplex", "collections"];

/// Returns 403 if the key sees only verdicts and the route is not for such keys.
pub(super) fn check_route(route: &Route, caller: &Caller) -> Result<(), Problem> {
    if route.coarse {
        return Ok(());
    }
    refuse(caller, || "this request is not allowed".to_owned())
}

/// Returns 403 if the key sees only verdicts and a parameter is not for such keys.
pub(super) fn check_parameters(query: &Query, caller: &Caller) -> Result<(), Problem> {
    match query.names().find(|name| !PARAMETERS.contains(name) && !is_default(query, name)) {
        Some(name) => refuse(caller, || format!("the parameter `{name}` is not allowed")),
        None => Ok(()),
    }
}

fn refuse(caller: &Caller, why: impl FnOnce() -> String) -> Result<(), Problem> {
    match (caller.scores(), caller.name()) {
        (Scores::Verdict, Some(name)) => {
            let detail = format!(
                "the key `{name}` sees only verdicts (`scores = \"verdict\"`): it may check, insert and delete, also in a \
                 batch or in bulk, with the parameters {}; {}",
                PARAMETERS.join(", "),
                why()
            );
            Err(Problem::new(Code::Forbidden, detail))
        }
        _ => Ok(()),
    }
}
