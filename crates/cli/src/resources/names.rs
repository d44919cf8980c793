//! Lists in which names stand in place of the ids of endpoints and templates.

use std::collections::BTreeMap;

use longshore_client::Collection;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{ListArgs, named};
use crate::exit::{CommandExit, CommandResult, cannot};
use crate::output::{OutputFormat, harmless, parsed};
use crate::remote::Connection;
use crate::table::Column;

/// Lists resources. A table has the names of endpoints and templates that the key may list, and the ids of the others.
pub(super) async fn list_named(args: &ListArgs, of: Collection, columns: &[Column]) -> CommandResult {
    let session = args.remote.connect()?;
    let mut records = session.client.list(of).await.map_err(|error| named(error.into(), of))?;
    if session.output.format == OutputFormat::Table {
        let names = names(&session).await;
        records = records.iter().map(|record| with_names(record, &names)).collect::<CommandResult<_>>()?;
    }
    session.output.records(columns, &records)?;
    Ok(CommandExit::Success)
}

/// The names of endpoints and templates by id, as far as the key may list them.
async fn names(session: &Connection) -> BTreeMap<String, String> {
    let endpoints = session.client.endpoints().await.unwrap_or_default();
    let templates = session.client.templates().await.unwrap_or_default();
    let endpoints = endpoints
        .into_iter()
        .filter_map(|endpoint| Some((endpoint.id.to_string(), endpoint.slug.or(Some(endpoint.name))?)));
    endpoints.chain(templates.into_iter().map(|template| (template.id.to_string(), template.name))).collect()
}

/// A record with names in place of the ids in `usedBy` and `endpoints`.
fn with_names(record: &RawValue, names: &BTreeMap<String, String>) -> CommandResult<Box<RawValue>> {
    let mut record = parsed(record);
    for at in ["/endpoints", "/usedBy/endpoints", "/usedBy/templates"] {
        for id in record.pointer_mut(at).and_then(Value::as_array_mut).into_iter().flatten() {
            let name = id.as_str().and_then(|id| names.get(id)).filter(|name| !name.is_empty());
            if let Some(name) = name {
                *id = Value::from(name.as_str());
            }
        }
    }
    to_raw_value(&record).map_err(|error| cannot("show a record", error))
}

/// Formats a list of texts. Those that another key wrote cannot control the terminal.
pub(super) fn words(value: &Value) -> String {
    let words: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    harmless(&words.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_cannot_control_the_terminal() {
        assert_eq!(words(&json!(["a\u{1b}[2J", "b"])), "a\u{fffd}[2J b");
    }

    #[test]
    fn ids_have_names_where_they_are_known() {
        let names = BTreeMap::from([("e1".to_owned(), "chat".to_owned()), ("t1".to_owned(), String::new())]);
        let record = json!({ "name": "A", "endpoints": ["*"],
            "usedBy": { "templates": ["t1"], "endpoints": ["e1", "e2"] } });
        let shown = with_names(&to_raw_value(&record).unwrap(), &names).unwrap();
        let used = r#""usedBy":{"endpoints":["chat","e2"],"templates":["t1"]}"#;
        assert!(shown.get().contains(used), "{shown}");
    }
}
