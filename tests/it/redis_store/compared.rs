//! The parts of two answers that are compared.

use serde_json::Value;

/// The fields that are left out:
///
/// - times, and the number of the request;
/// - `seq`: the numbers in a cluster are taken in blocks, and insertions that store nothing take one, too;
/// - `representative`: in a cluster, documents that are stored beside their duplicates form no clusters of documents.
/// - `documents` of a collection: in a cluster, it is counted a little later;
/// - `candidates` of insertions, once documents may be stored beside their duplicates: an insertion on a disk also
///   compares the representatives of the documents that it has found.
const LEFT_OUT: [&str; 8] =
    ["created", "expires", "first_seen", "id_first_seen", "last_seen", "request_id", "seq", "representative"];

/// Returns the parts of an answer that are compared. `beside`: documents may be stored beside their duplicates.
pub fn compared(mut answer: Value, beside: bool) -> Value {
    leave_out(&mut answer, beside);
    answer
}

fn leave_out(value: &mut Value, beside: bool) {
    match value {
        Value::Object(fields) => {
            LEFT_OUT.iter().for_each(|name| _ = fields.remove(*name));
            if fields.get("documents").is_some_and(Value::is_number) {
                fields.remove("documents");
            }
            if beside && fields.get("outcome").is_some_and(|outcome| outcome != "checked") {
                fields.remove("candidates");
            }
            fields.values_mut().for_each(|value| leave_out(value, beside));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| leave_out(value, beside)),
        _ => {}
    }
}
