//! The lease of a node, and what it reads of the others meanwhile.

use std::sync::Arc;

use longshore_store::StoreError;
use tokio::time::{Instant, sleep_until};

use super::{LEASE, MARGIN, PAUSE, RENEWAL_INTERVAL, Shared, connected, in_time};
use crate::sessions::{NodeDatabase, NodeSession as _, Renewal};

/// Renews the lease for ever. Ends when another node has declared this one dead, and says so.
pub(super) async fn renew<D: NodeDatabase>(shared: Arc<Shared<D>>, session: D::Session) {
    let mut session = Some(session);
    loop {
        // Counted from before the statement is sent: the database counts from later.
        let began = Instant::now();
        let next = match round(&shared, &mut session).await {
            Ok(Some(Renewal { nodes, now })) => {
                shared.clock.set(now);
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
                session = None;
                tracing::debug!(%error, "the lease of this node cannot be renewed yet");
                Instant::now() + PAUSE
            }
        };
        sleep_until(next).await;
    }
}

/// Renews the lease once. Returns `None` if another node has declared this one dead.
async fn round<D: NodeDatabase>(
    shared: &Shared<D>,
    session: &mut Option<D::Session>,
) -> Result<Option<Renewal>, StoreError> {
    let open = connected(&shared.database, false, session.take()).await?;
    let renewal = in_time(open.renew(shared.me.id)).await?;
    *session = Some(open);
    Ok(renewal)
}

fn lose<D>(shared: &Shared<D>) {
    shared.rights.send_modify(|rights| {
        (rights.lease_end, rights.has_lock) = (None, false);
    });
    let text = "another node has declared this one dead, because it did not renew its lease within 3 s or did not answer; \
        start it again, and it waits to take over";
    shared.lost.send_replace(Some(StoreError::Unusable(text.to_owned())));
}
