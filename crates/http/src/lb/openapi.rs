//! The forwarded requests in the API's document. No router has them: every method and every path below is the worker's.

use http::Method;
use serde_json::{Value, json};

use super::PATTERN;
use crate::openapi::{Group, Operation};

const ABOUT: &str = "Requests that are forwarded to the HTTP servers of an endpoint of the type `LB`. The worker gets every \
    method, with `/{path}` and the query as the client wrote them, and its response is the response. Errors that no worker \
    made have their code in `X-Longshore-Error` too. With the setting `lb_domain`, \
    `https://{endpointId}.{lb_domain}/{path}` is the same address.";

/// The documented operations: one for each method that clients use.
pub(crate) fn group() -> Group {
    let of = |id, method: &Method, summary| {
        Operation::forwarded(id, method, PATTERN)
            .summary(summary)
            .gives("WorkerAnswer")
            .or_events()
            .refuses_as("Error")
            .rated()
    };
    let bytes = "application/octet-stream";
    Group {
        name: "Load balancing",
        about: ABOUT,
        operations: vec![
            of("ForwardGet", &Method::GET, "forwards a GET request to a worker"),
            of("ForwardPost", &Method::POST, "forwards a POST request to a worker").may_take_bytes(bytes),
            of("ForwardPut", &Method::PUT, "forwards a PUT request to a worker").may_take_bytes(bytes),
            of("ForwardPatch", &Method::PATCH, "forwards a PATCH request to a worker").may_take_bytes(bytes),
            of("ForwardDelete", &Method::DELETE, "forwards a DELETE request to a worker"),
        ],
        schemas: vec![("WorkerAnswer", schema())],
    }
}

fn schema() -> Value {
    json!({ "description": "the worker's response" })
}
