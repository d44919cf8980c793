//! `longshore serve` as one of several servers of a database: answers from its start on, and owns the shards when its turn comes.

mod identity;
mod membership;

use std::sync::Arc;
use std::time::{Duration, Instant};

use longshore_http::{Cluster, PeerSecret, PeerTls, Tls};
use longshore_postgres::{Membership, NewNode, Owned};
use longshore_trust::Roots;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::membership::Member;
use crate::parts::{self, Rows};
use crate::serve::{STOP_TIME_MAX, announce_key};
use crate::service::{self, Listeners, Place, Service};
use crate::settings::Settings;
use crate::startup_error::StartupError;
use crate::{bootstrap_key, fd_limit, listener, objects, secrets};

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A node that answers.
struct RunningNode {
    membership: Arc<Membership>,
    cluster: Cluster,
    serving: JoinSet<()>,
    closing: watch::Sender<()>,
    /// How long requests may take after the node starts to stop.
    grace: Duration,
}

/// The certificate for the other nodes, and which certificates of theirs are trusted; nothing of both without the settings.
fn peer_tls(settings: &Settings) -> Result<(Option<Tls>, PeerTls), StartupError> {
    let Some(files) = settings.cluster_tls() else { return Ok((None, PeerTls::default())) };
    let roots = Roots::only(files.authorities).map_err(StartupError::PeerAuthorities)?;
    let own = Tls::of_nodes(files.certificate, files.key, roots.store())?;
    let mut client = roots.client_config();
    client.client_auth_cert_resolver = own.of_client();
    Ok((Some(own), PeerTls::new(Some(client))))
}

/// Why a node stops to be what it is.
enum Turn {
    Owner(Owned),
    Stop,
    Lost(StartupError),
    Forgotten(StartupError),
}

/// Serves until `stop` ends, first as a standby. `announced` is called when the node answers.
///
/// # Errors
///
/// The node cannot join, or another node has declared it dead.
pub(crate) async fn serve(
    settings: &Settings,
    listeners: Listeners,
    announced: impl FnOnce() -> Result<(), StartupError>,
    stop: impl Future<Output = ()>,
) -> Result<(), StartupError> {
    let data_dir = parts::hold_data_dir(settings).await?;
    objects::open_and_probe(settings).await?;
    let peers = listener::listen(&settings.cluster_listen).await?;
    let place = Place::of(settings, &listeners)?;
    let mut node = RunningNode::join(settings, listeners, peers, &place).await?;
    announced()?;
    let mut stop = std::pin::pin!(stop);
    let turn = tokio::select! {
        owned = node.membership.owned() => Turn::Owner(owned),
        () = &mut stop => Turn::Stop,
        error = node.membership.lost() => Turn::Lost(error.into()),
    };
    let (service, turn) = match turn {
        Turn::Owner(owned) => {
            let mut service = node.take_over(settings, place, owned).await?;
            let turn = tokio::select! {
                () = &mut stop => Turn::Stop,
                error = node.membership.lost() => Turn::Lost(error.into()),
                error = service.lost() => Turn::Forgotten(error.into()),
            };
            (Some(service), turn)
        }
        turn => (None, turn),
    };
    let ended = node.end(service, turn).await;
    drop(data_dir);
    ended
}

impl RunningNode {
    /// Joins the cluster and answers as a standby.
    async fn join(
        settings: &Settings,
        listeners: Listeners,
        peers: TcpListener,
        place: &Place,
    ) -> Result<Self, StartupError> {
        let Some(database) = settings.database()? else {
            return Err(StartupError::NotWithDatabase("a node of a cluster needs a database in `store`"));
        };
        let database = parts::with_authorities(settings, database)?;
        let secret = identity::prove(settings, &database, &secrets::vault(settings)?).await?;
        let bound = peers
            .local_addr()
            .map_err(|cause| StartupError::Listen { address: settings.cluster_listen.clone(), cause })?;
        let (own_tls, peer_tls) = peer_tls(settings)?;
        let new = NewNode {
            name: settings.node_name(),
            address: PeerTls::address(&settings.cluster_address(bound), own_tls.is_some()),
            version: VERSION.to_owned(),
        };
        let address = database.address();
        let trusted = peer_tls.clone();
        let is_gone: longshore_postgres::IsGone = Arc::new(move |node| {
            let trusted = trusted.clone();
            Box::pin(async move { longshore_http::is_gone(&node, &trusted).await })
        });
        let membership = Arc::new(Membership::join(database, &new, is_gone).await?);
        tracing::info!(name = %new.name, address = %new.address, node = membership.id(), database = %address, "joined the cluster");
        let member = Arc::new(Member::of(&membership));
        let cluster = Cluster::new(member, PeerSecret::new(&secret), peer_tls, &settings.http());
        let (closing, closed) = watch::channel(());
        let mut serving = JoinSet::new();
        service::serve_all(
            listeners,
            &mut serving,
            closed.clone(),
            |listener, surface, connections_max, closed| {
                let edge = cluster.edge(surface);
                longshore_http::serve_node(listener, edge, place.tls.clone(), connections_max, closed)
            },
        );
        let closed = service::until_closed(closed);
        let connections_max = fd_limit::connections_max();
        serving.spawn(longshore_http::serve_peers(
            peers,
            cluster.peer_edge(),
            own_tls,
            connections_max,
            closed,
        ));
        Ok(Self { membership, cluster, serving, closing, grace: settings.shutdown_grace() })
    }

    /// Starts the engine, and answers with it.
    async fn take_over(
        &mut self,
        settings: &Settings,
        place: Place,
        owned: Owned,
    ) -> Result<Service, StartupError> {
        let began = Instant::now();
        let status = Some(self.cluster.status());
        let prepared = Service::prepare(settings, place, Rows::OfOwner(owned), status, bootstrap_key::ensure);
        let (mut service, edge, made_key) = prepared.await?;
        if let Some(key) = made_key {
            announce_key(&key);
        }
        let serving = std::mem::take(&mut self.serving);
        service.serves(serving, self.closing.clone());
        self.cluster.own(&edge, began.elapsed());
        tracing::info!(ms = began.elapsed().as_millis() as u64, "this node decides about all jobs now");
        Ok(service)
    }

    /// Waits for the requests that this standby passed on, and breaks them off after a while.
    async fn end_requests(&mut self) {
        let all_served = async { while self.serving.join_next().await.is_some() {} };
        if tokio::time::timeout(self.grace, all_served).await.is_err() {
            tracing::warn!(grace_s = self.grace.as_secs_f64(), "requests unanswered at shutdown");
            self.serving.abort_all();
        }
    }

    /// Stops answering, and tells the other nodes.
    async fn end(mut self, service: Option<Service>, turn: Turn) -> Result<(), StartupError> {
        let result = match turn {
            Turn::Lost(error) => {
                tracing::error!(%error, "stopping, because this node was declared dead");
                Err(error)
            }
            Turn::Forgotten(error) => {
                tracing::error!(%error, "stopping, because the rows of the database are no longer those of this server");
                Err(error)
            }
            Turn::Owner(_) | Turn::Stop => {
                tracing::info!("stopping, workers continue");
                Ok(())
            }
        };
        let stopping = async {
            let _ = self.closing.send(());
            self.cluster.release_polls();
            match service {
                Some(service) if result.is_ok() => service.stop().await,
                // What this node knows is out of date, so that nothing of it is written.
                Some(_) => {}
                None => self.end_requests().await,
            }
            if result.is_ok()
                && let Err(error) = self.membership.leave().await
            {
                tracing::warn!(%error, "the other nodes were not told that this one stops");
            }
        };
        if tokio::time::timeout(STOP_TIME_MAX, stopping).await.is_err() {
            tracing::warn!("stopped before all parts ended; acknowledged jobs are stored");
        }
        result
    }
}
