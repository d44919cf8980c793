//! The models of endpoints, read from the endpoints' records. No job is created.

use std::collections::BTreeSet;

use axum::response::{IntoResponse as _, Response};
use http::Uri;
use longshore_engine::EndpointHandle;
use longshore_model::Endpoint;

use super::error::OpenAiError;
use crate::wire::json_body::JsonBody;

/// The models of these endpoints. An endpoint without models counts as one model, named by its slug or id. If two
/// endpoints have a model of the same name, the first endpoint serves it.
pub(super) fn list(endpoints: &[EndpointHandle]) -> Response {
    let mut seen = BTreeSet::new();
    let mut body = JsonBody::new();
    body.text("{\"object\":\"list\",\"data\":[");
    for endpoint in endpoints {
        let record = endpoint.record();
        for name in names(&record) {
            if seen.insert(name.clone()) {
                body.text(if seen.len() > 1 { "," } else { "" });
                write(&record, &name, &mut body);
            }
        }
    }
    body.text("]}");
    body.into_response()
}

/// The response about one model.
pub(super) fn one(endpoint: &EndpointHandle, name: &str) -> Response {
    let mut body = JsonBody::new();
    write(&endpoint.record(), name, &mut body);
    body.into_response()
}

/// The endpoint with a model of this name, or else the endpoint with this name.
pub(super) fn find(endpoints: &[EndpointHandle], name: &str) -> Option<EndpointHandle> {
    let has_model = |record: &Endpoint| record.models.iter().any(|model| model == name);
    let has_slug = |record: &Endpoint| record.slug.as_deref() == Some(name);
    let has_id = |record: &Endpoint| record.id.as_str() == name;
    let by = |fits: &dyn Fn(&Endpoint) -> bool| endpoints.iter().find(|endpoint| fits(&endpoint.record()));
    by(&has_model).or_else(|| by(&has_slug)).or_else(|| by(&has_id)).cloned()
}

/// The response to a request for the models of one endpoint. `None` for other routes, and for an endpoint without listed
/// models: then the worker answers.
pub(super) fn of_endpoint(endpoint: &EndpointHandle, route: &str) -> Option<Response> {
    let record = endpoint.record();
    let rest = route.strip_prefix("v1/models").filter(|_| !record.models.is_empty())?;
    match rest.strip_prefix('/') {
        None if rest.is_empty() => Some(list(std::slice::from_ref(endpoint))),
        None => None,
        Some(name) if record.models.iter().any(|model| model == name) => Some(one(endpoint, name)),
        Some(name) => Some(OpenAiError::no_such_model(name).into_response()),
    }
}

/// The part of an address after `/v2/{endpoint}`.
pub(super) fn after_endpoint(uri: &Uri) -> Uri {
    let whole = uri.path_and_query().map_or(uri.path(), |whole| whole.as_str());
    let rest = whole.match_indices('/').nth(2).map_or("/", |(at, _)| &whole[at..]);
    rest.parse().unwrap_or_default()
}

fn names(record: &Endpoint) -> Vec<String> {
    if record.models.is_empty() {
        vec![record.slug.clone().unwrap_or_else(|| record.id.to_string())]
    } else {
        record.models.clone()
    }
}

fn write(record: &Endpoint, name: &str, body: &mut JsonBody) {
    body.text("{\"id\":").string(name).text(",\"object\":\"model\",\"created\":");
    body.number(record.created_at.0 / 1_000).text(",\"owned_by\":").string(record.id.as_str()).text("}");
}
