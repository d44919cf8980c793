//! The lease of a node, and what it reads of the others meanwhile.

use std::sync::Arc;

use longshore_model::{Millis, Node, NodeState, Nodes};
use longshore_store::StoreError;
use tokio::time::{Instant, sleep_until};
use tokio_postgres::{Client, Row};

use super::{LEASE, MARGIN, PAUSE, RENEWAL_INTERVAL, Shared, connected, in_time};
use crate::connect::Role;
use crate::error::store_error;

const RENEW: &str =
    "UPDATE node SET until = clock_timestamp() + interval '3 s' WHERE id = $1 AND NOT is_dead RETURNING id";
const NODES: &str = "SELECT node.id, name, address, version, (extract(epoch FROM joined_at) * 1000)::int8, is_dead, \
    until > clock_timestamp(), cluster.owner IS NOT DISTINCT FROM node.id, cluster.epoch \
    FROM cluster, node ORDER BY node.id";

/// Renews the lease for ever. Ends when another node has declared this one dead, and says so.
pub(super) async fn renew(shared: Arc<Shared>, client: Client) {
    let mut client = Some(client);
    loop {
        // Counted from before the statement is sent: the database counts from later.
        let began = Instant::now();
        let next = match round(&shared, &mut client).await {
            Ok(Some(nodes)) => {
                shared.rights.send_modify(|rights| rights.lease_end = Some(began + LEASE - MARGIN));
                shared.nodes.send_if_modified(|known| {
                    // Read before another owner became known.
                    let is_late = nodes.epoch < known.epoch;
                    let is_new = !is_late && **known != nodes;
                    if is_new {
                        *known = Arc::new(nodes);
                    }
                    is_new
                });
                began + RENEWAL_INTERVAL
            }
            Ok(None) => return lose(&shared),
            Err(error) => {
                client = None;
                tracing::debug!(%error, "the lease of this node cannot be renewed yet");
                Instant::now() + PAUSE
            }
        };
        sleep_until(next).await;
    }
}

/// Renews the lease once. Returns `None` if another node has declared this one dead.
async fn round(shared: &Shared, client: &mut Option<Client>) -> Result<Option<Nodes>, StoreError> {
    let open = connected(&shared.database, Role::Lease, client.take()).await?;
    let renewed = in_time(open.query_opt(RENEW, &[&shared.id])).await?;
    if renewed.is_none() {
        return Ok(None);
    }
    let rows = in_time(open.query(NODES, &[])).await?;
    *client = Some(open);
    nodes(&rows).map(Some).map_err(|error| store_error(&error))
}

fn lose(shared: &Shared) {
    shared.rights.send_modify(|rights| {
        (rights.lease_end, rights.has_lock) = (None, false);
    });
    let text = "another node has declared this one dead, because it did not renew its lease within 3 s or did not answer; \
        start it again, and it waits to take over";
    shared.lost.send_replace(Some(StoreError::Unusable(text.to_owned())));
}

fn nodes(rows: &[Row]) -> Result<Nodes, tokio_postgres::Error> {
    let mut nodes = Nodes::default();
    for row in rows {
        let (is_dead, is_current, is_owner) =
            (row.try_get::<_, bool>(5)?, row.try_get::<_, bool>(6)?, row.try_get::<_, bool>(7)?);
        let state = match (is_dead, is_current) {
            (true, _) => NodeState::Gone,
            (false, false) => NodeState::Away,
            (false, true) if is_owner => NodeState::Owner,
            (false, true) => NodeState::Standby,
        };
        let node = Node {
            id: row.try_get(0)?,
            name: row.try_get(1)?,
            address: row.try_get(2)?,
            version: row.try_get(3)?,
            joined_at: Millis(row.try_get::<_, i64>(4)?.cast_unsigned()),
            state,
        };
        nodes.epoch = row.try_get(8)?;
        if is_owner {
            nodes.owner = Some(node.clone());
        }
        nodes.all.push(node);
    }
    Ok(nodes)
}
