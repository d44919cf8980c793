//! The routes that the `openai` client libraries use. Every request becomes a job with `openai_route` and `openai_input`,
//! and the response is the worker's output, byte for byte.
//!
//! `/v2/{endpoint}/openai/v1` is one endpoint. At `/openai/v1` the name of the model chooses the endpoint. While no worker
//! is ready, requests wait: after an error these clients would submit the same prompt again.

mod all_endpoints;
mod cancel_guard;
mod error;
mod joined;
mod models;
mod one_endpoint;
mod openapi;
mod parts;
mod python_literal;
mod request;
mod sse_framer;
mod streamed;
mod whole;

use axum::response::Response;

use crate::openapi::{Group, Operation};

pub(crate) use error::reshape;

/// Whether a path belongs to these routes, whose errors have the form of the OpenAI API.
pub(crate) fn is_address(path: &str) -> bool {
    let mut segments = path.split('/').skip(1);
    match segments.next() {
        Some("openai") => true,
        Some("v2") => segments.nth(1) == Some("openai"),
        _ => false,
    }
}

/// The operations that the `openai` client libraries use.
pub(crate) fn group() -> Group {
    let all = "/openai/v1";
    let single = "/v2/{endpoint}/openai/{*route}";
    let answers =
        |operation: Operation| operation.gives("OpenAiAnswer").or_events().refuses_as("OpenAiError");
    Group {
        name: "OpenAI",
        about: "For the client libraries of OpenAI, unchanged: set their base address to `/v2/{endpoint}/openai/v1`, \
            or to `/openai/v1` for all endpoints, and their key to a key of this server.",
        operations: vec![
            answers(Operation::get("OpenAiGet", single, one_endpoint::asked_by_get))
                .summary("sends a request without a body to a worker of the endpoint")
                .rated(),
            answers(Operation::post("OpenAiPost", single, one_endpoint::asked_by_post))
                .summary("asks an endpoint's worker")
                .about(openapi::POST)
                .takes("OpenAiRequest")
                .rated(),
            Operation::get("OpenAiModels", format!("{all}/models"), all_endpoints::models)
                .summary("the models of all endpoints that the key may use")
                .gives("OpenAiModelList")
                .refuses_as("OpenAiError"),
            Operation::get("OpenAiModel", format!("{all}/models/{{*model}}"), all_endpoints::model)
                .summary("one model")
                .gives("OpenAiModel")
                .refuses_as("OpenAiError"),
            answers(Operation::post("OpenAiFleetPost", format!("{all}/{{*route}}"), all_endpoints::asked))
                .summary("sends a request to the endpoint that has the model")
                .about(openapi::FLEET)
                .takes("OpenAiRequest")
                .rated(),
        ],
        schemas: openapi::schemas(),
    }
}

/// A response, or the error to answer with.
type Answered = Result<Response, crate::wire::api_error::ApiError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_addresses_are_told_from_others() {
        for path in ["/openai/v1/models", "/openai", "/v2/e/openai/v1/chat/completions"] {
            assert!(is_address(path), "{path}");
        }
        for path in ["/", "/v2/e/run", "/v2/openai/run", "/v1/endpoints/openai", "/sdk/v2/e/openai/v1"] {
            assert!(!is_address(path), "{path}");
        }
    }
}
