//! Parses the text of a query into selected fields. Fragments, variables and directives are resolved here.

use std::collections::HashMap;

use async_graphql_parser::types::{
    Directive, DocumentOperations, ExecutableDocument, FragmentDefinition, OperationDefinition,
    OperationType, Selection, SelectionSet,
};
use async_graphql_parser::{Positioned, parse_query};
use async_graphql_value::{ConstValue, Name, Value as Argument};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::FieldError;

/// Longest text of a query, in bytes.
const TEXT_BYTES_MAX: usize = 64 * 1_024;
/// Deepest nesting of fields. The deepest selection of the schema needs five.
const DEPTH_MAX: usize = 12;
/// Deepest nesting of brackets in the text, including lists and objects in arguments.
const BRACKETS_MAX: usize = 40;
/// Most fields in a query. A field of a fragment counts for each use of the fragment.
const FIELDS_MAX: usize = 500;
/// Most root fields, each of which may list all resources.
const ROOTS_MAX: usize = 10;

/// Whether a request reads or changes resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationKind {
    Query,
    Mutation,
}

impl OperationKind {
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Self::Query => "Query",
            Self::Mutation => "Mutation",
        }
    }
}

/// A field that a query selects.
#[derive(Debug)]
pub(super) struct SelectedField {
    /// The name in the response: the alias, or else the field's name.
    pub key: String,
    /// The name in the schema.
    pub name: String,
    /// The arguments, with variables replaced by their values.
    pub arguments: Map<String, Value>,
    /// The fields that are selected of the field's value.
    pub fields: Vec<SelectedField>,
}

impl SelectedField {
    /// The members of the argument `input`, which must be an object.
    pub(super) fn input(&self) -> Result<Map<String, Value>, FieldError> {
        match self.arguments.get("input") {
            Some(Value::Object(members)) => Ok(members.clone()),
            Some(_) => Err(FieldError::new(format!("`input` of `{}` must be an object", self.name))),
            None => Err(FieldError::new(format!("`{}` needs the argument `input`", self.name))),
        }
    }
}

#[derive(Deserialize)]
struct Sent {
    query: String,
    #[serde(default)]
    variables: Option<Map<String, Value>>,
    #[serde(default, rename = "operationName")]
    operation_name: Option<String>,
}

/// Parses the body of a request into the operation and its root fields.
///
/// # Errors
///
/// A [`FieldError`] for a body, a query or an operation that is invalid or over a limit.
pub(super) fn read(body: &[u8]) -> Result<(OperationKind, Vec<SelectedField>), FieldError> {
    let sent: Sent = serde_json::from_slice(body).map_err(|error| {
        FieldError::new(format!("the body must be a JSON object with the text of a `query`: {error}"))
    })?;
    check_size(&sent.query)?;
    let document = parse_query(&sent.query).map_err(|error| FieldError::new(error.to_string()))?;
    let ExecutableDocument { operations, fragments } = document;
    let operation = chosen(operations, sent.operation_name.as_deref())?;
    let kind = match operation.ty {
        OperationType::Query => OperationKind::Query,
        OperationType::Mutation => OperationKind::Mutation,
        OperationType::Subscription => return Err(FieldError::new("there are no subscriptions here")),
    };
    let variables = variables(&operation, sent.variables.unwrap_or_default())?;
    let mut reader = QueryReader { fragments, variables, fields_left: FIELDS_MAX };
    let mut selected_fields = Vec::new();
    reader.read(&operation.selection_set.node, DEPTH_MAX, &mut selected_fields)?;
    if selected_fields.len() > ROOTS_MAX {
        return Err(FieldError::new(format!("a request may have {ROOTS_MAX} root fields at most")));
    }
    Ok((kind, selected_fields))
}

/// Checks the length and the nesting of the text first, because the parser is recursive.
fn check_size(text: &str) -> Result<(), FieldError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(FieldError::new(format!("the query is longer than {TEXT_BYTES_MAX} bytes")));
    }
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > BRACKETS_MAX {
            return Err(FieldError::new(format!("the query nests deeper than {BRACKETS_MAX} brackets")));
        }
    }
    Ok(())
}

fn chosen(operations: DocumentOperations, name: Option<&str>) -> Result<OperationDefinition, FieldError> {
    let mut all: Vec<(Option<String>, OperationDefinition)> = match operations {
        DocumentOperations::Single(operation) => vec![(None, operation.node)],
        DocumentOperations::Multiple(all) => {
            all.into_iter().map(|(name, operation)| (Some(name.to_string()), operation.node)).collect()
        }
    };
    let found = match name {
        None if all.len() == 1 => all.pop(),
        None => None,
        Some(_) => all.into_iter().find(|(known, _)| known.as_deref() == name),
    };
    let found = found.map(|(_, operation)| operation);
    found.ok_or_else(|| FieldError::new("`operationName` must name one of the query's operations"))
}

fn variables(
    operation: &OperationDefinition,
    mut sent: Map<String, Value>,
) -> Result<HashMap<String, ConstValue>, FieldError> {
    let mut known = HashMap::new();
    for definition in &operation.variable_definitions {
        let name = definition.node.name.node.as_str();
        let value = match sent.remove(name) {
            Some(value) => {
                ConstValue::from_json(value).map_err(|error| FieldError::new(error.to_string()))?
            }
            None => definition.node.default_value().cloned().unwrap_or(ConstValue::Null),
        };
        known.insert(name.to_owned(), value);
    }
    Ok(known)
}

struct QueryReader {
    fragments: HashMap<Name, Positioned<FragmentDefinition>>,
    variables: HashMap<String, ConstValue>,
    fields_left: usize,
}

impl QueryReader {
    fn read(
        &mut self,
        set: &SelectionSet,
        depth_left: usize,
        selected_fields: &mut Vec<SelectedField>,
    ) -> Result<(), FieldError> {
        if !set.items.is_empty() && depth_left == 0 {
            return Err(FieldError::new(format!("the query nests deeper than {DEPTH_MAX} fields")));
        }
        for item in &set.items {
            self.fields_left = self
                .fields_left
                .checked_sub(1)
                .ok_or_else(|| FieldError::new(format!("a query may have {FIELDS_MAX} fields at most")))?;
            if !self.is_included(item.node.directives())? {
                continue;
            }
            match &item.node {
                Selection::Field(field) => {
                    let field = &field.node;
                    let mut fields = Vec::new();
                    self.read(&field.selection_set.node, depth_left - 1, &mut fields)?;
                    let mut arguments = Map::new();
                    for (name, value) in &field.arguments {
                        arguments.insert(name.node.to_string(), self.value(&value.node)?);
                    }
                    let key = field.response_key().node.to_string();
                    selected_fields.push(SelectedField {
                        key,
                        name: field.name.node.to_string(),
                        arguments,
                        fields,
                    });
                }
                // Each field has one possible type, so the type condition of a fragment is always true.
                Selection::InlineFragment(inline) => {
                    self.read(&inline.node.selection_set.node, depth_left - 1, selected_fields)?;
                }
                Selection::FragmentSpread(spread) => {
                    let name = &spread.node.fragment_name.node;
                    let unknown = || FieldError::new(format!("there is no fragment `{name}`"));
                    let fragment = self.fragments.get(name).ok_or_else(unknown)?.clone();
                    self.read(&fragment.node.selection_set.node, depth_left - 1, selected_fields)?;
                }
            }
        }
        Ok(())
    }

    /// Whether `@skip` and `@include` leave a field in the query.
    fn is_included(&self, directives: &[Positioned<Directive>]) -> Result<bool, FieldError> {
        for Positioned { node: directive, .. } in directives {
            let condition = directive.arguments.iter().find(|(name, _)| name.node == "if");
            let condition = condition.map(|(_, value)| self.value(&value.node)).transpose()?;
            match (directive.name.node.as_str(), condition) {
                ("skip", Some(Value::Bool(skip))) if skip => return Ok(false),
                ("include", Some(Value::Bool(include))) if !include => return Ok(false),
                ("skip" | "include", Some(Value::Bool(_))) => {}
                (name, _) => {
                    return Err(FieldError::new(format!("`@{name}` is not known, or lacks its `if`")));
                }
            }
        }
        Ok(true)
    }

    fn value(&self, argument: &Argument) -> Result<Value, FieldError> {
        let known = |name: Name| {
            let unknown = || FieldError::new(format!("the variable `${name}` is not declared"));
            self.variables.get(name.as_str()).cloned().ok_or_else(unknown)
        };
        let value = argument.clone().into_const_with(known)?;
        value.into_json().map_err(|error| FieldError::new(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use longshore_hostile::{cases, mutated};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #![proptest_config(cases(200))]

        #[test]
        fn any_query_is_survived(query in mutated(Just(r#"query A($a: [Int!] = [1]) @x { b: myself(input: {id: "\u00e4", l: [1.5, $a, E]}) { ...f @skip(if: true) ... on U { id } } } fragment f on User { id }"#), &[b"{", b"[", b"\"", b"...", b"\"\"\"", b"$"])) {
            let body = json!({ "query": String::from_utf8_lossy(&query) }).to_string();
            let _ = read(body.as_bytes());
        }

        #[test]
        fn any_body_is_survived(body: Vec<u8>) {
            let _ = read(&body);
        }
    }
}
