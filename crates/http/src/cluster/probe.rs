//! Asks at a node's address whether its process is still there.

use std::time::Duration;

use http::header::HOST;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt as _, Empty};
use longshore_model::Node;
use longshore_planted::{Bug, planted};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::peer_tls::{PeerTls, authority};

/// The path at which a node says its id to the other nodes.
pub(super) const PATH: &str = "/internal/1/node";
/// How long a node may take to answer. A process that stands still accepts connections and does not answer.
const ANSWER_MAX: Duration = Duration::from_millis(500);

/// What is at the address of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// The connection is refused: no process listens there.
    Nothing,
    /// The node of this id answers.
    Node(i32),
    /// What is there did not say its id.
    Unclear,
}

/// Whether the process of a node has ended: its address refuses connections, or another start of a node answers there. `false` if
/// nothing answers in time: then the process, or the way to it, may only stand still.
pub async fn is_gone(node: &Node, tls: &PeerTls) -> bool {
    is_gone_by(node.id, find(node, tls)).await
}

/// As [`is_gone`], with what `finding` finds at the address of the node.
pub async fn is_gone_by(node: i32, finding: impl Future<Output = ProbeResult>) -> bool {
    match timeout(ANSWER_MAX, finding).await {
        Ok(ProbeResult::Nothing) => true,
        Ok(ProbeResult::Node(id)) => id != node,
        Ok(ProbeResult::Unclear) => false,
        Err(_) => planted(Bug::TimeoutIsDeath),
    }
}

async fn find(node: &Node, tls: &PeerTls) -> ProbeResult {
    match TcpStream::connect(authority(&node.address)).await {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => return ProbeResult::Nothing,
        Err(_) => return ProbeResult::Unclear,
        Ok(_) => {}
    }
    id_at(&node.address, tls).await.map_or(ProbeResult::Unclear, ProbeResult::Node)
}

/// The id of the node that answers at the address.
async fn id_at(address: &str, tls: &PeerTls) -> Option<i32> {
    let mut link = tls.links(address).await?.fresh().await.ok()?;
    let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
    let mut request = Request::new(body);
    *request.uri_mut() = PATH.parse().ok()?;
    request.headers_mut().insert(HOST, HeaderValue::try_from(authority(address)).ok()?);
    let response = link.sender().send_request(request).await.ok()?;
    let text = response.into_body().collect().await.ok()?.to_bytes();
    std::str::from_utf8(&text).ok()?.strip_prefix("longshore node ")?.trim().parse().ok()
}
