//! The families about a node of a cluster.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use longshore_model::{NodeState, ShardId};

use super::exposition::{Exposition, MetricType};
use super::format::Format;
use super::server::{process_numbers, single};
use crate::services::node_status::{NodeStatus, Passed};

/// The page of a node that does not own the shards: it names no endpoint.
pub(crate) fn page(node: &NodeStatus, headers: &HeaderMap) -> Response {
    let format = Format::asked_for(headers);
    let mut page = Exposition::new(format);
    families(&mut page, node);
    process_numbers(&mut page);
    ([(CONTENT_TYPE, format.content_type())], page.into_page(&[]).whole()).into_response()
}

pub(super) fn families(page: &mut Exposition, node: &NodeStatus) {
    let shards = if node.takeover().is_some() { ShardId::COUNT } else { 0 };
    let help = "shards that this node owns: all or none";
    single(page, "longshore_shards_owned", MetricType::Gauge, help, f64::from(shards));
    let help = "how long the lease of this node still lasts";
    let left = node.membership.lease_left().as_secs_f64();
    single(page, "longshore_lease_left_seconds", MetricType::Gauge, help, left);
    if let Some(took) = node.takeover() {
        let help = "time from when this node became the owner until it served";
        single(page, "longshore_takeover_seconds", MetricType::Gauge, help, took.as_secs_f64());
    }
    let name = "longshore_forwarded_total";
    page.family(
        name,
        MetricType::Counter,
        "requests that this node passed on to the owner, by what became of them",
    );
    for passed in Passed::ALL {
        page.sample(name, &[("outcome", passed.as_str())], node.counted(passed));
    }
    let name = "longshore_nodes";
    page.family(name, MetricType::Gauge, "nodes of the cluster as this one last read them, by state");
    let nodes = node.shown_nodes();
    for state in NodeState::ALL {
        let number = nodes.iter().filter(|other| other.state == state).count();
        page.sample(name, &[("state", &state.as_str().to_ascii_lowercase())], number);
    }
}
