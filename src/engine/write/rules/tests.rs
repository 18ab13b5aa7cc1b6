//! Compares the rules with a table that was recorded over HTTP. The table was recorded with a version in which the
//! rules were not a pure function yet. `tests/it/decision` records the same lines with a server. Here each line's plan
//! must predict the recorded values.

use super::*;

const TABLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/decision/table.tsv"));

/// A line of the table.
struct Line<'a> {
    columns: &'a [&'a str],
    values: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn get(&self, name: &str) -> &'a str {
        let at = self.columns.iter().position(|column| *column == name);
        self.values[at.unwrap_or_else(|| panic!("no column {name}"))]
    }

    /// Returns the choice that the column's value names.
    fn choose<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> T {
        let value = self.get(name);
        let choice = choices.iter().find(|(choice, _)| *choice == value);
        choice.unwrap_or_else(|| panic!("{name}: {value}")).1
    }

    fn is_duplicate(&self) -> bool {
        self.choose("verdict", &[("unique", false), ("empty", false), ("near", true), ("exact", true)])
    }

    fn terms(&self) -> WriteTerms {
        let on_duplicate = [("skip", OnDuplicate::Skip), ("link", OnDuplicate::Link), ("store", OnDuplicate::Store)];
        let on_existing =
            [("conflict", OnExisting::Conflict), ("replace", OnExisting::Replace), ("keep", OnExisting::Keep)];
        WriteTerms {
            on_duplicate: self.choose("on_duplicate", &on_duplicate),
            on_existing: self.choose("on_existing", &on_existing),
            touch: self.choose("touch", &[("off", false), ("on", true)]),
        }
    }

    fn held(&self) -> Held {
        let metadata = [("absent", SentBeside::Absent), ("equal", SentBeside::Equal), ("other", SentBeside::Other)];
        match self.get("held").split_once('_') {
            None => Held::Nothing,
            Some(("same", _)) => {
                Held::Same { sent: self.choose("metadata", &metadata), was_duplicate: self.is_duplicate() }
            }
            Some((_, what)) => Held::Other { heir_is_link: what == "rep" },
        }
    }

    fn duplicates(&self) -> Duplicates {
        match self.get("best") {
            "none" => Duplicates::None,
            _ => Duplicates::Found {
                best: self.choose(
                    "best",
                    &[("document", BestMatch::Document), ("link", BestMatch::Link), ("heir", BestMatch::Heir)],
                ),
                representative: self.choose("representative", &[("none", false), ("found", true)]),
            },
        }
    }

    /// Returns the plan. Asks the rules in the same order as the engine.
    fn plan(&self) -> Plan {
        let (terms, held) = (self.terms(), self.held());
        let plan = match self.get("verdict") {
            "empty" => of_empty(terms.on_existing, held),
            _ => before_lookup(terms, held).unwrap_or_else(|| after_lookup(terms, held, self.duplicates())),
        };
        let has_room = self.choose("room", &[("yes", true), ("no", false)]);
        if plan.effect.stores() && !has_room { plan.without_room() } else { plan }
    }

    fn best(&self) -> &'static str {
        match (self.get("best"), self.get("representative")) {
            ("link", _) => "link",
            ("heir", _) => "heir",
            (_, "found") => "rep",
            _ => "member",
        }
    }

    /// Returns the representative of the matches.
    fn joined(&self) -> &'static str {
        if self.get("best") == "heir" { "heir" } else { "rep" }
    }

    /// Returns the columns of the answer that the plan predicts.
    fn answer(&self, plan: &Plan) -> Vec<(&'static str, String)> {
        let status = match plan.result {
            Ok(_) => "200",
            Err(Refusal::Conflict) => "409 id_conflict",
            Err(Refusal::NoRoom) => "507 memory_budget_reached",
        };
        let stored = match (plan.result, plan.stored()) {
            (Err(_), false) => "-",
            (_, stored) => yes(stored),
        };
        let named = match plan.named {
            Named::OfHeld if self.get("representative") == "found" => "rep",
            Named::Nothing | Named::OfHeld => "-",
            Named::Joined => self.joined(),
            Named::OfBestMatch => "rep",
        };
        let outcome = plan.result.map_or("-", Outcome::as_str);
        let columns =
            [("status", status), ("outcome", outcome), ("stored", stored), ("answered_representative", named)];
        columns.map(|(name, value)| (name, value.to_owned())).to_vec()
    }

    /// Returns the columns of the documents that the plan predicts.
    fn documents(&self, effect: Effect) -> Vec<(&'static str, String)> {
        let (whose, what) = self.get("held").split_once('_').unwrap_or(("nothing", ""));
        let sent = match self.get("metadata") {
            "equal" => "held",
            "other" => "sent",
            _ => "-",
        };
        let [holds, metadata, linked] = match effect {
            Effect::Nothing | Effect::Remove(_) if whose == "nothing" => ["nothing", "-", "-"],
            Effect::Nothing if whose == "same" => ["same", "held", yes(what == "link")],
            Effect::Nothing => ["held", "held", yes(what == "link")],
            Effect::Update => ["same", "sent", yes(what == "link")],
            Effect::Insert(arrival) | Effect::Replace(_, arrival) => ["sent", sent, yes(arrival.linked)],
            Effect::Remove(_) => ["nothing", "-", "-"],
        };
        let heir = match effect {
            _ if what != "rep" => "-",
            Effect::Replace(Departure { promotes }, _) | Effect::Remove(Departure { promotes }) if promotes => {
                "document"
            }
            _ => "link",
        };
        let mut columns = vec![("holds", holds), ("has_metadata", metadata), ("linked", linked), ("heir", heir)];
        if let Effect::Insert(Arrival { joins, .. }) | Effect::Replace(_, Arrival { joins, .. }) = effect {
            // The plan does not determine the other members of the cluster.
            let cluster = self.get("cluster");
            let joined = joins && cluster.starts_with(self.joined()) && cluster.ends_with("self");
            columns.push(("cluster", if joined { cluster } else { "-" }));
        }
        columns.into_iter().map(|(name, value)| (name, value.to_owned())).collect()
    }

    /// Returns the documents that the plan counts as seen again, in the format of the table.
    fn touched(&self, seen_again: SeenAgain) -> Vec<(&'static str, String)> {
        let roles = [(seen_again.best, self.best()), (seen_again.representative, "rep"), (seen_again.held, "self")];
        let roles: Vec<&str> = roles.iter().filter(|(is_seen, _)| *is_seen).map(|(_, role)| *role).collect();
        vec![("touched", if roles.is_empty() { "-".to_owned() } else { roles.join(",") })]
    }

    /// Returns all columns that the rules predict.
    fn predicted(&self) -> Vec<(&'static str, String)> {
        if self.get("op") == "delete" {
            let heir_is_link = match self.held() {
                Held::Other { heir_is_link } => Some(heir_is_link),
                _ => None,
            };
            let effect = of_delete(heir_is_link);
            let status = if effect == Effect::Nothing { "200 deleted 0" } else { "200 deleted 1" };
            return [vec![("status", status.to_owned())], self.documents(effect)].concat();
        }
        let plan = self.plan();
        [self.answer(&plan), self.documents(plan.effect), self.touched(plan.seen_again)].concat()
    }
}

fn yes(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

#[test]
fn the_rules_predict_what_was_recorded() {
    let mut lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let columns: Vec<&str> = lines.next().expect("a header").split('\t').collect();
    let (mut compared, mut wrong) = (0, Vec::new());
    for text in lines {
        let line = Line { columns: &columns, values: text.split('\t').collect() };
        assert_eq!(line.values.len(), columns.len(), "{text}");
        for (name, predicted) in line.predicted() {
            compared += 1;
            if line.get(name) != predicted {
                wrong.push(format!("the predicted {name} is {predicted}: {text}"));
            }
        }
    }
    assert!(compared > 50_000, "only {compared} values were compared");
    assert!(wrong.is_empty(), "{} of {compared}, the first:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
}
