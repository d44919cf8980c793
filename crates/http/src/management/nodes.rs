//! `/v1/nodes`: the servers that share the database.

use axum::extract::State;
use axum::http::HeaderMap;
use longshore_model::{Node, NodeState};
use serde_json::{Value, json};

use super::JsonResult;
use super::access::may_read;
use crate::HttpState;
use crate::openapi::schema::{count, object, text, time};
use crate::openapi::{Group, Operation};
use crate::services::node_status::NodeStatus;
use crate::wire::rfc3339::rfc3339;

/// The operation on nodes.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("ListNodes", "/v1/nodes", list)
            .summary("the servers that share the database")
            .about("The one whose `state` is `OWNER` decides about all jobs; a `STANDBY` passes requests on and takes over when \
                    the owner is gone. `AWAY` is one that has not renewed its lease for 3 s or more, `GONE` one that has \
                    stopped or was declared dead. A server without others has an empty list.")
            .lists("Node"),
    ];
    let state = json!({ "type": "string", "enum": NodeState::ALL.map(NodeState::as_str) });
    let members = [
        ("id", count()),
        ("name", text()),
        ("address", text()),
        ("version", text()),
        ("joinedAt", time()),
        ("state", state),
    ];
    let names = members.clone().map(|(name, _)| name);
    let about = "The servers that share the database.";
    Group { name: "Nodes", about, operations, schemas: vec![("Node", object(&members, &names))] }
}

async fn list(State(state): State<HttpState>, headers: HeaderMap) -> JsonResult {
    may_read(&state, &headers)?;
    let nodes = state.node().map(NodeStatus::shown_nodes).unwrap_or_default();
    Ok(nodes.iter().map(view).collect::<Value>().into())
}

fn view(node: &Node) -> Value {
    json!({
        "id": node.id,
        "name": node.name,
        "address": node.address,
        "version": node.version,
        "joinedAt": rfc3339(node.joined_at),
        "state": node.state.as_str(),
    })
}
