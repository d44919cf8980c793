//! `/v1/images`: container images that the server's Docker daemon builds of folders.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use http::header::CONTENT_TYPE;
use longshore_model::Provider;
use longshore_model::limits::CODE_BODY_BYTES_MAX;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::access::may_manage;
use super::code::{PATTERN, name};
use super::endpoints::NO_DOCKER;
use crate::HttpState;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;
use crate::wire::body::{self, ReadBody};
use crate::wire::query::Query;

/// The type of the response: a JSON object on each line.
const LINES: &str = "application/x-ndjson";
const NAME: &[Parameter] =
    &[query("name", ParameterKind::Form(PATTERN), "the name of the image, before its tag").required()];
/// Pieces of output that may wait for the client. The build waits for it with more.
const WAITING_MAX: usize = 64;
/// After this time without output an empty line is sent, so that no proxy ends the response.
const QUIET_MAX: Duration = Duration::from_secs(15);
/// Digits of the context's hash in a tag.
const TAG_CHARS: usize = 12;

/// The operations on images.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::post("BuildImage", "/v1/images", build)
            .summary("builds a container image of a folder with a Dockerfile")
            .about(
                "The body is a gzipped tar of the folder. The server's Docker daemon builds it. The \
                 response has a JSON object on each line: `text` is a piece of the output. The last line has the name of the \
                 image as `image`, for the `imageName` of a template, or why there is none as `error`. The end of the \
                 connection ends the build.",
            )
            .takes_bytes("application/gzip")
            .gives_text(LINES)
            .with(NAME),
    ];
    Group { name: "Images", about: "Images of folders with a Dockerfile.", operations, schemas: vec![] }
}

async fn build(
    State(state): State<HttpState>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let key = may_manage(&state, &headers)?;
    let name = name(&Query::of(&uri)?)?;
    if !state.engine().providers().contains(&Provider::Docker) {
        let text = format!("this server builds no images{NO_DOCKER}");
        return Err(ApiError::bad_request("no_docker", text));
    }
    let ReadBody { bytes, permit } = body::read(body, CODE_BODY_BYTES_MAX, state.budget()).await?;
    let mut tag = const_hex::encode(digest(&SHA256, &bytes));
    tag.truncate(TAG_CHARS);
    let image = format!("{name}:{tag}");
    let (print, output) = mpsc::channel(WAITING_MAX);
    let engine = state.engine().clone();
    tracing::info!(%image, by = %key.id, "building an image");
    let building = tokio::spawn(async move {
        let built = engine.build_image(&image, bytes.into(), print).await;
        drop(permit);
        if let Err(reason) = &built {
            tracing::warn!(%image, reason, "image not built");
        }
        built
    });
    let lines = unfold(Some((output, building)), |state| async {
        let (output, building) = state?;
        Some(next_line(output, building).await)
    });
    let body = Body::from_stream(lines.map(Ok::<_, Infallible>));
    Ok(([(CONTENT_TYPE, LINES)], body).into_response())
}

/// A build in progress: its output, and its result.
type Building = (Receiver<String>, JoinHandle<Result<String, String>>);

/// The next line of a response, and what follows it; nothing follows the result.
async fn next_line(
    mut output: Receiver<String>,
    building: JoinHandle<Result<String, String>>,
) -> (Bytes, Option<Building>) {
    let value = match timeout(QUIET_MAX, output.recv()).await {
        Err(_) => return (Bytes::from_static(b"\n"), Some((output, building))),
        Ok(Some(text)) => return (line(&json!({ "text": text })), Some((output, building))),
        Ok(None) => match building.await {
            Ok(Ok(image)) => json!({ "image": image }),
            Ok(Err(reason)) => json!({ "error": reason }),
            Err(_) => json!({ "error": "the server failed; its log has the reason" }),
        },
    };
    (line(&value), None)
}

fn line(value: &Value) -> Bytes {
    format!("{value}\n").into()
}
