//! The routes in the API's document.

use serde_json::{Value, json};

use crate::openapi::schema::{array_of, count, object, reference, text, with_example};

pub(super) const POST: &str = "The body becomes the job's `openai_input`, the path its `openai_route`. With \
    `\"stream\": true` the answer is the worker's events as they come.";
pub(super) const FLEET: &str = "`model` is one of an endpoint's `models`, its slug or its id.";

/// The schemas of these routes.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let nothing_or_text = json!({ "type": "string", "nullable": true });
    let error = [
        ("message", text()),
        ("type", text()),
        ("param", nothing_or_text),
        ("code", json!({ "nullable": true })),
    ];
    let error = object(&error, &["message", "type"]);
    let model = [("id", text()), ("object", text()), ("created", count()), ("owned_by", text())];
    let list = [("object", text()), ("data", array_of(&reference("OpenAiModel")))];
    let request = object(&[("model", text()), ("stream", json!({ "type": "boolean" }))], &[]);
    let messages = json!([{ "role": "user", "content": "Say hello." }]);
    vec![
        (
            "OpenAiRequest",
            with_example(request, json!({ "model": "hello", "messages": messages, "stream": true })),
        ),
        ("OpenAiAnswer", json!({ "description": "the worker's response, as it is" })),
        ("OpenAiError", object(&[("error", error)], &["error"])),
        ("OpenAiModel", object(&model, &["id", "object"])),
        ("OpenAiModelList", object(&list, &["object", "data"])),
    ]
}
