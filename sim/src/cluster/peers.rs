//! The network between nodes.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt as _;
use longshore_engine::RequestBody;
use longshore_http::{NetFuture, PeerEdge, PeerLink, PeerNet, PeerReply, ProbeResult, as_connection};
use longshore_model::Node;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::lost_take::LostTake;
use super::partitions::{Partitions, Place};
use crate::faults::{Fault, Faults};
use crate::network::Network;
use crate::rng::Rng;
use crate::scheduler::Process;
use crate::world::World;

/// Longest time between two nodes, in ms.
const LATENCY_MS_MAX: u64 = 2;
/// How long a node tries to connect to another one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The address of every node: nodes do not tell clients apart by them.
const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

/// The nodes as they reach each other. Cheap to clone.
#[derive(Clone)]
pub(super) struct Peers {
    shared: Arc<PeersShared>,
}

struct PeersShared {
    network: Network,
    faults: Faults,
    partitions: Partitions,
    rng: Mutex<Rng>,
    nodes: Mutex<BTreeMap<usize, Listening>>,
}

/// A node that listens to its peers.
#[derive(Clone)]
struct Listening {
    id: i32,
    process: Process,
    edge: PeerEdge,
}

impl Peers {
    pub(super) fn new(world: &World, rng: &mut Rng, partitions: Partitions) -> Self {
        let shared = PeersShared {
            network: world.network.clone(),
            faults: world.faults.clone(),
            partitions,
            rng: Mutex::new(rng.fork()),
            nodes: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The address of a node.
    pub(super) fn address(number: usize) -> String {
        format!("node-{number}")
    }

    /// A node listens from now on.
    pub(super) fn listen(&self, number: usize, id: i32, process: &Process, edge: PeerEdge) {
        self.nodes().insert(number, Listening { id, process: process.clone(), edge });
    }

    /// The way from a node to the others.
    pub(super) fn of_node(&self, number: usize) -> PeersOfNode {
        PeersOfNode { peers: self.clone(), number }
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<usize, Listening>> {
        self.shared.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn latency(&self) -> Duration {
        let mut rng = self.shared.rng.lock().unwrap_or_else(PoisonError::into_inner);
        Duration::from_millis(rng.range(0..=LATENCY_MS_MAX))
    }

    async fn pass(&self, from: usize, to: usize) {
        sleep(self.latency()).await;
        self.shared.partitions.pass(Place::Node(from), Place::Node(to)).await;
    }
}

/// The network as one node sees it. Cheap to clone.
#[derive(Clone)]
pub(super) struct PeersOfNode {
    peers: Peers,
    number: usize,
}

impl PeersOfNode {
    /// What is at the address of a node.
    pub(super) async fn find(&self, node: &Node) -> ProbeResult {
        let Some(to) = number(node) else { return ProbeResult::Unclear };
        let listening = self.there(to).await;
        let Some(there) = listening else { return ProbeResult::Nothing };
        // A process that stands still accepts connections, and its tasks do not run.
        let (reply, answer) = oneshot::channel();
        let id = there.id;
        there.process.spawn(async move {
            // The asking node may have stopped waiting.
            let _ = reply.send(id);
        });
        let answer = answer.await;
        self.peers.pass(to, self.number).await;
        // A process that dies while it is asked refuses connections soon.
        answer.map_or(ProbeResult::Unclear, ProbeResult::Node)
    }

    /// The process that listens at an address, as far as its computer says; `None` if none does.
    async fn there(&self, to: usize) -> Option<Listening> {
        self.peers.pass(self.number, to).await;
        let there = self.peers.nodes().get(&to).cloned().filter(|there| !there.process.is_dead());
        self.peers.pass(to, self.number).await;
        there
    }
}

/// The number of a node in the cluster, from its address.
fn number(node: &Node) -> Option<usize> {
    node.address.strip_prefix("node-")?.parse().ok()
}

impl PeerNet for PeersOfNode {
    fn connect<'a>(&'a self, node: &'a Node) -> NetFuture<'a, Option<Box<dyn PeerLink>>> {
        Box::pin(async move {
            let to = number(node)?;
            let there = timeout(CONNECT_TIMEOUT, self.there(to)).await.ok()??;
            let link: Box<dyn PeerLink> = Box::new(Link { from: self.clone(), to, there });
            Some(link)
        })
    }
}

/// A connection to a node.
struct Link {
    from: PeersOfNode,
    to: usize,
    there: Listening,
}

impl PeerLink for Link {
    fn send(
        self: Box<Self>,
        request: http::Request<RequestBody>,
        _takes_interims: bool,
    ) -> NetFuture<'static, PeerReply> {
        let Self { from, to, there } = *self;
        Box::pin(async move {
            let (peers, number) = (from.peers, from.number);
            let (reply, answer) = oneshot::channel();
            peers.pass(number, to).await;
            let lost_take = LostTake::of(&peers.shared.network, &request);
            let handler = answer_into(there.edge, request.map(Body::new), reply);
            let handler = there.process.spawn(as_connection(ADDRESS, handler));
            let connection = OpenConnection(handler.abort_handle());
            let Ok((head, pieces)) = answer.await else {
                return PeerReply::Lost("the node ended".to_owned());
            };
            peers.pass(to, number).await;
            if peers.shared.faults.inject(Fault::PeerAnswerLost) {
                return PeerReply::Lost("the connection to the node broke".to_owned());
            }
            if let Some(take) = lost_take {
                take.is_answered();
            }
            PeerReply::Answered(head.map(|()| Body::new(Pieces { pieces, _connection: connection })))
        })
    }
}

/// The head of a response, and its body in pieces, which end with `None`.
type Reply = (http::Response<()>, mpsc::Receiver<Option<Bytes>>);

/// Answers a request, and sends the pieces of the body while they are read.
async fn answer_into(edge: PeerEdge, request: http::Request<Body>, reply: oneshot::Sender<Reply>) {
    let response: Response = edge.response(request).await;
    let (parts, mut body) = response.into_parts();
    let (sender, pieces) = mpsc::channel(1);
    if reply.send((http::Response::from_parts(parts, ()), pieces)).is_err() {
        return;
    }
    loop {
        let piece = match body.frame().await {
            None => None,
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => Some(data),
                Err(_) => continue,
            },
            // The body breaks off: the pieces end without `None`.
            Some(Err(_)) => return,
        };
        let is_end = piece.is_none();
        if sender.send(piece).await.is_err() || is_end {
            return;
        }
    }
}

/// A connection with a request. The node that answers notices when it is closed.
struct OpenConnection(AbortHandle);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The body of a node's response.
struct Pieces {
    pieces: mpsc::Receiver<Option<Bytes>>,
    _connection: OpenConnection,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.pieces.poll_recv(context).map(|piece| match piece {
            Some(Some(data)) => Some(Ok(Frame::data(data))),
            Some(None) => None,
            None => Some(Err(io::ErrorKind::ConnectionReset.into())),
        })
    }
}
