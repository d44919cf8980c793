//! Answers what the other nodes pass on.

use std::convert::Infallible;

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, StatusCode};

use super::Cluster;
use super::local::LeaseLoss;
use super::peer_head::{LOST_LEASE, NOT_OWNER, PEER, PeerHead, take_number, take_waited};
use super::probe;
use crate::connection::answers::Answers;
use crate::gate::peer::{self, Peer};
use crate::services::open_connections::OpenConnection;
use crate::wire::api_error::ApiError;
use crate::wire::frames::{FRAMES, FramesFrom};

/// The routes for peers: those of the owner, for requests that a node has signed. Cheap to clone.
#[derive(Clone)]
pub struct PeerEdge {
    cluster: Cluster,
}

impl PeerEdge {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self { cluster }
    }

    /// Answers a request of another node. Must be called in the task of its connection.
    pub async fn response(self, mut request: Request) -> Response {
        let id = self.cluster.id();
        if request.uri().path() == probe::PATH {
            return format!("longshore node {id}\n").into_response();
        }
        let secret = &self.cluster.shared.secret;
        let read = PeerHead::read(secret, request.headers(), request.method(), request.uri());
        let Some(head) = read else {
            let text = "this address is for the other servers of the cluster, which sign what they send; use the server's \
                `listen` address";
            return ApiError::new(StatusCode::FORBIDDEN, "not_a_peer", text).into_response();
        };
        if head.to != id {
            return not_owner();
        }
        let Some(routes) = self.cluster.routes_soon(head.surface).await else { return not_owner() };
        request.headers_mut().remove(PEER);
        peer::set_client(Peer::new(head.address, head.is_tls), head.job);
        peer::set_number(take_number(request.headers_mut()));
        peer::set_waited(take_waited(request.headers_mut()));
        let frames = request.headers_mut().remove(FRAMES);
        peer::set_frames(frames.and_then(|value| FramesFrom::of_text(value.to_str().ok()?)));
        let has_job = head.job.is_some();
        match self.cluster.within_lease(&routes, request).await {
            // This node stops. The sender repeats the submit under the same job id, at the next owner.
            Ok(response) if has_job && is_unavailable(&response) && self.cluster.is_stopping() => not_owner(),
            Ok(response) => response,
            Err(LeaseLoss::Before) => not_owner(),
            Err(loss @ LeaseLoss::During) => {
                let mut response = loss.error().into_response();
                response.headers_mut().insert(LOST_LEASE, HeaderValue::from_static("1"));
                response
            }
        }
    }
}

impl Answers for PeerEdge {
    fn answer(&self, request: Request) -> impl Future<Output = Result<Response, Infallible>> + Send {
        let edge = self.clone();
        async move { Ok(edge.response(request).await) }
    }

    fn count_connection(&self) -> Option<OpenConnection> {
        Some(self.cluster.shared.connections.open())
    }
}

fn is_unavailable(response: &Response) -> bool {
    response.status() == StatusCode::SERVICE_UNAVAILABLE
}

/// The request changed nothing, or its repetition changes nothing more: its sender asks the present owner.
fn not_owner() -> Response {
    let error = ApiError::new(
        StatusCode::MISDIRECTED_REQUEST,
        "not_owner",
        "this node does not own the shards, and changed nothing",
    );
    let mut response = error.into_response();
    response.headers_mut().insert(NOT_OWNER, HeaderValue::from_static("1"));
    response
}
