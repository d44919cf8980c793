//! `GET /v1/openapi.json`: the API's document, for people and for generators of clients. It needs no key.

use axum::Json;
use serde_json::{Map, Value, json};

use super::parameters::{DRAIN, INCLUDE, PAGE, Parameter, RUN, RUN_SYNC, STATUS, STATUS_SYNC, STREAM};
use super::schemas;

/// The version of the API that the document describes; the specification fixes it.
const API_VERSION: &str = "0.1.0";

/// One operation.
struct Operation {
    id: &'static str,
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    /// The schema of its body.
    takes: Option<&'static str>,
    gives: Gives,
    parameters: &'static [Parameter],
}

/// What an operation answers.
#[derive(Clone, Copy)]
enum Gives {
    One(&'static str),
    Many(&'static str),
    Nothing,
}

/// Makes the table below one line per operation.
const fn operation(
    id: &'static str,
    (method, path): (&'static str, &'static str),
    takes: Option<&'static str>,
    gives: Gives,
    parameters: &'static [Parameter],
    summary: &'static str,
) -> Operation {
    Operation { id, method, path, summary, takes, gives, parameters }
}

use Gives::{Many, Nothing, One};

#[rustfmt::skip]
const OPERATIONS: &[Operation] = &[
    operation("ListTemplates", ("get", "/v1/templates"), None, Many("Template"), &[], "every template"),
    operation("CreateTemplate", ("post", "/v1/templates"), Some("TemplateCreateInput"), One("Template"), &[], "makes a template"),
    operation("GetTemplate", ("get", "/v1/templates/{templateId}"), None, One("Template"), &[], "one template"),
    operation("UpdateTemplate", ("patch", "/v1/templates/{templateId}"), Some("TemplateUpdateInput"), One("Template"), &[], "changes what is sent"),
    operation("UpdateTemplateByPost", ("post", "/v1/templates/{templateId}/update"), Some("TemplateUpdateInput"), One("Template"), &[], "the same as PATCH"),
    operation("DeleteTemplate", ("delete", "/v1/templates/{templateId}"), None, Nothing, &[], "deletes a template that no endpoint uses"),
    operation("ListEndpoints", ("get", "/v1/endpoints"), None, Many("Endpoint"), INCLUDE, "every endpoint"),
    operation("CreateEndpoint", ("post", "/v1/endpoints"), Some("EndpointCreateInput"), One("Endpoint"), &[], "makes an endpoint; needs `templateId` or `template`"),
    operation("GetEndpoint", ("get", "/v1/endpoints/{endpointId}"), None, One("Endpoint"), INCLUDE, "one endpoint"),
    operation("UpdateEndpoint", ("patch", "/v1/endpoints/{endpointId}"), Some("EndpointUpdateInput"), One("Endpoint"), &[], "changes what is sent"),
    operation("UpdateEndpointByPost", ("post", "/v1/endpoints/{endpointId}/update"), Some("EndpointUpdateInput"), One("Endpoint"), &[], "the same as PATCH"),
    operation("DeleteEndpoint", ("delete", "/v1/endpoints/{endpointId}"), None, Nothing, DRAIN, "deletes an endpoint with its jobs; `drain` waits for the running ones"),
    operation("CreateWorkerToken", ("post", "/v1/endpoints/{endpointId}/worker-token"), None, One("WorkerToken"), &[], "what a worker from outside needs in its environment"),
    operation("Run", ("post", "/v2/{endpointId}/run"), Some("JobRequest"), One("Job"), RUN, "hands in a job"),
    operation("RunSync", ("post", "/v2/{endpointId}/runsync"), Some("JobRequest"), One("Job"), RUN_SYNC, "hands in a job and waits for its end"),
    operation("Status", ("get", "/v2/{endpointId}/status/{jobId}"), None, One("Job"), STATUS, "a job as it is"),
    operation("StatusByPost", ("post", "/v2/{endpointId}/status/{jobId}"), None, One("Job"), STATUS, "the same as GET"),
    operation("StatusSync", ("get", "/v2/{endpointId}/status-sync/{jobId}"), None, One("Job"), STATUS_SYNC, "a job when it is over"),
    operation("StatusSyncByPost", ("post", "/v2/{endpointId}/status-sync/{jobId}"), None, One("Job"), STATUS_SYNC, "the same as GET"),
    operation("Stream", ("get", "/v2/{endpointId}/stream/{jobId}"), None, Many("StreamChunk"), STREAM, "the next chunks of a job's stream"),
    operation("StreamByPost", ("post", "/v2/{endpointId}/stream/{jobId}"), None, Many("StreamChunk"), STREAM, "the same as GET"),
    operation("Cancel", ("post", "/v2/{endpointId}/cancel/{jobId}"), None, One("Job"), &[], "ends a job"),
    operation("Retry", ("post", "/v2/{endpointId}/retry/{jobId}"), None, One("Job"), &[], "queues a failed or timed-out job again"),
    operation("PurgeQueue", ("post", "/v2/{endpointId}/purge-queue"), None, One("PurgeResult"), &[], "cancels every waiting job"),
    operation("Health", ("get", "/v2/{endpointId}/health"), None, One("Health"), &[], "numbers of jobs and workers"),
    operation("ListRequests", ("get", "/v2/{endpointId}/requests"), None, One("RequestPage"), PAGE, "the endpoint's jobs, newest first"),
];

pub(super) async fn document() -> Json<Value> {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = describe(operation);
    }
    Json(json!({
        "openapi": "3.0.3",
        "info": { "title": "Longshore", "version": API_VERSION, "license": { "name": "Apache-2.0" } },
        "security": [{ "key": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas::all(),
        },
    }))
}

fn describe(operation: &Operation) -> Value {
    let (status, answer) = match operation.gives {
        One(name) => ("200", json!({ "description": "done", "content": content(&reference(name)) })),
        Many(name) => {
            let list = json!({ "type": "array", "items": reference(name) });
            ("200", json!({ "description": "done", "content": content(&list) }))
        }
        Nothing => ("204", json!({ "description": "done" })),
    };
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters(operation),
        "responses": refusals(operation),
    });
    described["responses"][status] = answer;
    if let Some(name) = operation.takes {
        described["requestBody"] = json!({ "required": true, "content": content(&reference(name)) });
    }
    described
}

/// How an operation can be refused.
fn refusals(operation: &Operation) -> Value {
    let is_about_jobs = operation.path.starts_with("/v2/");
    let possible = [
        ("400", true, "the request is wrong"),
        ("401", true, "the key is missing, unknown or does not permit this"),
        ("404", true, "what the path names does not exist, or no longer"),
        (
            "409",
            is_about_jobs && operation.takes.is_some(),
            "the idempotency key came before with another body",
        ),
        ("413", operation.takes.is_some(), "the body is too large"),
        ("429", is_about_jobs, "too many requests, or too many jobs; `Retry-After` says when to ask again"),
        ("503", true, "the server cannot do this at the moment; `Retry-After` says when to ask again"),
    ];
    let refusals = possible.iter().filter(|(_, applies, _)| *applies).map(|(status, _, why)| {
        ((*status).to_owned(), json!({ "description": why, "content": content(&reference("Error")) }))
    });
    Value::Object(refusals.collect())
}

fn parameters(operation: &Operation) -> Value {
    let names = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = names
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let others = operation.parameters.iter().map(Parameter::describe);
    in_path.chain(others).collect()
}

fn content(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn made() -> Value {
        document().await.0
    }

    #[tokio::test]
    async fn every_reference_leads_to_a_schema_and_every_id_is_used_once() {
        let document = made().await;
        let text = document.to_string();
        for rest in text.split("#/components/schemas/").skip(1) {
            let name = rest.split('"').next().unwrap();
            assert!(document["components"]["schemas"].get(name).is_some(), "no schema `{name}`");
        }
        let mut ids: Vec<_> = OPERATIONS.iter().map(|operation| operation.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), OPERATIONS.len());
    }

    #[tokio::test]
    async fn a_page_of_jobs_is_described_with_their_times() {
        let document = made().await;
        let answer = &document["paths"]["/v2/{endpointId}/requests"]["get"]["responses"]["200"];
        let schema = &answer["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(schema, "#/components/schemas/RequestPage");
        let job = &document["components"]["schemas"]["ListedJob"]["properties"];
        assert_eq!((&job["startedAt"]["nullable"], &job["status"]["type"]), (&json!(true), &json!("string")));
    }

    #[tokio::test]
    async fn fields_are_described_with_type_limits_and_default() {
        let document = made().await;
        let created = &document["components"]["schemas"]["EndpointCreateInput"]["properties"];
        let expected = json!({
            "type": "integer", "minimum": 1, "maximum": 3_600, "default": 5,
            "description": "seconds a worker may idle"
        });
        assert_eq!(created["idleTimeout"], expected);
        assert!(created["id"].is_null());
        let updated = &document["components"]["schemas"]["EndpointUpdateInput"]["properties"];
        assert!(updated["template"].is_null() && updated["idleTimeout"]["default"].is_null());
        let read = &document["components"]["schemas"]["Endpoint"]["properties"];
        assert_eq!(read["template"], json!({ "$ref": "#/components/schemas/Template" }));
    }
}
