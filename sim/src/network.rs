//! Carries requests to the server and responses back, and loses some of them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use longshore_http::as_connection;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::sleep;
use tower::ServiceExt as _;

use crate::faults::{Fault, Faults};
use crate::observation::{ExchangeId, HttpRequest, HttpResponse, Observation, Party};
use crate::recorder::Recorder;
use crate::rng::Rng;
use crate::scheduler::Process;

/// Longest latency without a fault, in ms.
const LATENCY_MS_MAX: u64 = 3;
/// Longest latency with a fault, in ms.
const LATENCY_SLOW_MS_MAX: u64 = 20_000;
/// Longest time that a sender waits for a response, in ms.
const RESPONSE_TIMEOUT_MS_MAX: u64 = 30_000;

/// The address of all clients and workers.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Content type of streamed responses.
const EVENTS: &str = "text/event-stream";

/// No response arrived. Whether the request took effect is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLost;

/// The network between clients, workers and the server. Cheap to clone.
#[derive(Clone)]
pub struct Network {
    shared: Arc<NetworkShared>,
}

struct NetworkShared {
    faults: Faults,
    record: Recorder,
    last_id: AtomicU64,
    rng: Mutex<Rng>,
    /// The servers by the numbers of their nodes; one server is node 0.
    servers: Mutex<BTreeMap<usize, Server>>,
}

/// The server as the network sees it.
#[derive(Clone)]
struct Server {
    process: Process,
    router: Router,
    /// Whether it is a node of a cluster, which asks who the client of a connection is.
    is_node: bool,
    /// Whether new requests are rejected.
    closed: bool,
    /// Number of open requests.
    open: Arc<watch::Sender<usize>>,
}

impl Network {
    /// Creates a network without a server.
    pub fn new(rng: &mut Rng, faults: Faults, record: Recorder) -> Self {
        let shared = NetworkShared {
            faults,
            record,
            last_id: AtomicU64::new(0),
            rng: Mutex::new(rng.fork()),
            servers: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Routes requests to this server; `None` if there is none.
    pub fn connect(&self, server: Option<(Process, Router)>) {
        self.set_server(0, server, false);
    }

    /// Routes requests for a node to this server; `None` if there is none. Every request goes to one of the nodes.
    pub fn connect_node(&self, node: usize, server: Option<(Process, Router)>) {
        self.set_server(node, server, true);
    }

    fn set_server(&self, node: usize, server: Option<(Process, Router)>, is_node: bool) {
        let mut servers = lock(&self.shared.servers);
        match server {
            None => drop(servers.remove(&node)),
            Some((process, router)) => {
                let server = Server { process, router, is_node, closed: false, open: Arc::default() };
                servers.insert(node, server);
            }
        }
    }

    /// Rejects new requests from now on.
    pub fn close(&self) {
        self.close_node(0);
    }

    /// Rejects new requests for a node from now on.
    pub fn close_node(&self, node: usize) {
        if let Some(server) = lock(&self.shared.servers).get_mut(&node) {
            server.closed = true;
        }
    }

    /// Returns when the server has no open request.
    pub async fn until_idle(&self) {
        self.until_node_idle(0).await;
    }

    /// Returns when the server of a node has no open request.
    pub async fn until_node_idle(&self, node: usize) {
        let open = lock(&self.shared.servers).get(&node).map(|server| server.open.subscribe());
        if let Some(mut open) = open {
            // The sender lives as long as this server.
            let _ = open.wait_for(|open| *open == 0).await;
        }
    }

    /// The server that a request goes to: any of those that live.
    fn any_server(&self) -> Option<Server> {
        let servers = lock(&self.shared.servers);
        let mut living: Vec<&Server> =
            servers.values().filter(|server| !server.closed && !server.process.is_dead()).collect();
        if living.len() > 1 {
            let at = lock(&self.shared.rng).range(0..=living.len() as u64 - 1);
            return Some(living.swap_remove(at as usize).clone());
        }
        living.pop().cloned()
    }

    /// Sends a request and returns the response. Dropping the future disconnects.
    ///
    /// # Errors
    ///
    /// [`ConnectionLost`] if there is no server, or if a fault lost the request or the response. The request may have
    /// taken effect.
    pub async fn ask(&self, from: Party, request: HttpRequest) -> Result<HttpResponse, ConnectionLost> {
        self.follow(from, request, |_| true).await
    }

    /// Sends a request with a streamed response and passes on each piece when it arrives. The caller disconnects by
    /// returning `false`.
    ///
    /// # Errors
    ///
    /// [`ConnectionLost`] in the cases of [`Self::ask`], if the connection broke between two pieces, and if the caller
    /// disconnected.
    pub async fn follow(
        &self,
        from: Party,
        request: HttpRequest,
        receive: impl FnMut(&Bytes) -> bool,
    ) -> Result<HttpResponse, ConnectionLost> {
        let id = ExchangeId(self.shared.last_id.fetch_add(1, Ordering::Relaxed));
        let to_server = into_http(&request);
        self.shared.record.observe(&Observation::Sent(id, from, request));
        let mut exchange = InFlightRequest { network: self, id, handler: None, is_over: false };
        let answer = exchange.carry(to_server, receive).await;
        exchange.is_over = true;
        let seen = match &answer {
            Ok(answer) => Observation::Answered(id, answer.clone()),
            Err(ConnectionLost) => Observation::Broken(id),
        };
        self.shared.record.observe(&seen);
        answer
    }

    /// Records a request that a server got, and that no response follows.
    pub fn observe_lost(&self, from: Party, request: HttpRequest) {
        let id = ExchangeId(self.shared.last_id.fetch_add(1, Ordering::Relaxed));
        for seen in [Observation::Sent(id, from, request), Observation::Arrived(id), Observation::Broken(id)]
        {
            self.shared.record.observe(&seen);
        }
    }

    fn inject(&self, fault: Fault) -> bool {
        self.shared.faults.inject(fault)
    }

    fn random_ms(&self, ms_max: u64) -> Duration {
        Duration::from_millis(lock(&self.shared.rng).range(0..=ms_max))
    }

    async fn delay(&self) {
        let slow = self.inject(Fault::NetworkSlow);
        let takes = self.random_ms(if slow { LATENCY_SLOW_MS_MAX } else { LATENCY_MS_MAX });
        if !takes.is_zero() {
            sleep(takes).await;
        }
    }
}

/// A request in flight.
struct InFlightRequest<'a> {
    network: &'a Network,
    id: ExchangeId,
    handler: Option<AbortHandle>,
    is_over: bool,
}

impl InFlightRequest<'_> {
    async fn carry(
        &mut self,
        request: http::Request<Body>,
        receive: impl FnMut(&Bytes) -> bool,
    ) -> Result<HttpResponse, ConnectionLost> {
        let network = self.network;
        network.delay().await;
        if network.inject(Fault::RequestLost) {
            sleep(network.random_ms(RESPONSE_TIMEOUT_MS_MAX)).await;
            return Err(ConnectionLost);
        }
        let Some(server) = network.any_server() else { return Err(ConnectionLost) };
        network.shared.record.observe(&Observation::Arrived(self.id));
        let (reply, answer) = oneshot::channel();
        let open = OpenRequest::begin(server.open);
        let router = server.router;
        let handler = async move {
            let _open = open;
            serve(router, request, reply).await;
        };
        let handler = if server.is_node {
            server.process.spawn(as_connection(CLIENT, handler))
        } else {
            server.process.spawn(handler)
        };
        self.handler = Some(handler.abort_handle());
        let answer = if network.inject(Fault::HangUp) {
            let timeout = network.random_ms(RESPONSE_TIMEOUT_MS_MAX);
            tokio::time::timeout(timeout, answer).await.map_err(|_| ConnectionLost)?
        } else {
            answer.await
        };
        let (answer, pieces) = answer.map_err(|_| ConnectionLost)?;
        network.delay().await;
        if network.inject(Fault::AnswerLost) {
            sleep(network.random_ms(RESPONSE_TIMEOUT_MS_MAX)).await;
            return Err(ConnectionLost);
        }
        if let Some(pieces) = pieces {
            self.carry_pieces(pieces, receive).await?;
        }
        Ok(answer)
    }

    /// Delivers pieces in order; the connection may break before any of them. A slow reader delays the server.
    async fn carry_pieces(
        &self,
        mut pieces: mpsc::Receiver<Option<Bytes>>,
        mut receive: impl FnMut(&Bytes) -> bool,
    ) -> Result<(), ConnectionLost> {
        let network = self.network;
        loop {
            // A channel that closes without an end marker means that the server died.
            let piece = pieces.recv().await.ok_or(ConnectionLost)?;
            network.delay().await;
            if network.inject(Fault::AnswerLost) {
                sleep(network.random_ms(RESPONSE_TIMEOUT_MS_MAX)).await;
                return Err(ConnectionLost);
            }
            let Some(piece) = piece else { return Ok(()) };
            network.shared.record.observe(&Observation::Piece(self.id, piece.clone()));
            if !receive(&piece) || network.inject(Fault::HangUp) {
                return Err(ConnectionLost);
            }
        }
    }
}

impl Drop for InFlightRequest<'_> {
    fn drop(&mut self) {
        // The server notices the closed connection, as with a real one.
        if let Some(handler) = &self.handler {
            handler.abort();
        }
        if !self.is_over {
            self.network.shared.record.observe(&Observation::Broken(self.id));
        }
    }
}

/// Counts as an open request until it is dropped.
struct OpenRequest {
    count: Arc<watch::Sender<usize>>,
}

impl OpenRequest {
    fn begin(count: Arc<watch::Sender<usize>>) -> Self {
        count.send_modify(|open| *open += 1);
        Self { count }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.count.send_modify(|open| *open -= 1);
    }
}

/// A response, and for a stream the channel of its pieces, which ends with `None`.
type Reply = (HttpResponse, Option<mpsc::Receiver<Option<Bytes>>>);

async fn serve(router: Router, request: http::Request<Body>, reply: oneshot::Sender<Reply>) {
    let Ok(response) = router.oneshot(request).await;
    let (parts, body) = response.into_parts();
    // Request ids differ between runs of one seed on purpose, so the trace must not contain them.
    let headers = parts.headers.iter().filter(|(name, _)| name.as_str() != "x-request-id");
    let headers = headers.map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let (status, headers) = (parts.status.as_u16(), headers.collect());
    // A disconnected caller gets no response.
    if parts.headers.get("content-type").is_some_and(|kind| kind == EVENTS) {
        let (sender, pieces) = mpsc::channel(1);
        let _ = reply.send((HttpResponse { status, headers, body: Bytes::new() }, Some(pieces)));
        return stream(body, &sender).await;
    }
    // A body that another node sends may break off, and the connection with it.
    let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes) else { return };
    let _ = reply.send((HttpResponse { status, headers, body }, None));
}

/// Forwards a body while its reader is connected.
async fn stream(mut body: Body, pieces: &mpsc::Sender<Option<Bytes>>) {
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(piece) = frame.into_data() else { continue };
        if pieces.send(Some(piece)).await.is_err() {
            return;
        }
    }
    let _ = pieces.send(None).await;
}

fn into_http(request: &HttpRequest) -> http::Request<Body> {
    let mut built = http::Request::builder().method(request.method).uri(&request.path);
    for (name, value) in &request.headers {
        built = built.header(*name, value);
    }
    built = built.header("host", "longshore.test").header("content-length", request.body.len());
    built
        .body(Body::from(request.body.clone()))
        .expect("the simulated senders write requests that are well-formed")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
