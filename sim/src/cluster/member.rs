//! The membership of the simulated database, as the HTTP edge asks for it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use longshore_model::Nodes;
use longshore_postgres::Membership;
use tokio::sync::watch;

use crate::database::NodeView;

/// A node among the nodes of its database.
pub(super) struct Member(pub(super) Arc<Membership<NodeView>>);

impl longshore_http::Membership for Member {
    fn id(&self) -> i32 {
        self.0.id()
    }

    fn nodes(&self) -> watch::Receiver<Arc<Nodes>> {
        self.0.nodes()
    }

    fn may_serve(&self) -> bool {
        self.0.may_serve()
    }

    fn until_it_may_serve(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.0.until_it_may_serve())
    }

    fn lease_left(&self) -> Duration {
        self.0.lease_left()
    }
}
