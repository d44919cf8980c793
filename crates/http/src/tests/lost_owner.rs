//! Requests at a node whose owner is lost, without sockets.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use http::{Request, Response};
use longshore_engine::{RequestBody, TokioRuntime};
use longshore_model::{Millis, Node, NodeState, Nodes};
use serde_json::Value;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::direct::{ADMIN, Direct, request};
use crate::cluster::{NetFuture, PeerLink, PeerNet, PeerReply};
use crate::services::node_status::Membership;
use crate::{Cluster, HttpSettings, PeerEdge, PeerSecret, PeerTls, Surface, as_connection};

/// The id of the node that the clients ask; the owners have higher ones.
const ASKED: i32 = 1;
const FIRST: i32 = 2;
const NEXT: i32 = 3;
/// Longer than the pauses between attempts, shorter than any time that the tests tell apart.
const PAUSES: Duration = Duration::from_secs(1);

/// What the nodes know of each other.
type View = watch::Sender<Arc<Nodes>>;

fn owned_by(owner: i32, address: &str) -> Arc<Nodes> {
    let owner = Node {
        id: owner,
        name: format!("node-{owner}"),
        address: address.to_owned(),
        version: "1".to_owned(),
        joined_at: Millis(1),
        state: NodeState::Owner,
    };
    Arc::new(Nodes { all: vec![owner.clone()], owner: Some(owner), epoch: 1 })
}

/// A node's place among the others.
struct Seat {
    id: i32,
    nodes: watch::Receiver<Arc<Nodes>>,
    /// How many times the lease still lasts when it is looked at.
    lease_checks: AtomicU32,
}

impl Membership for Seat {
    fn id(&self) -> i32 {
        self.id
    }

    fn nodes(&self) -> watch::Receiver<Arc<Nodes>> {
        self.nodes.clone()
    }

    fn may_serve(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.lease_checks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn until_it_may_serve(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn lease_left(&self) -> Duration {
        Duration::ZERO
    }
}

/// What an owner does with the requests that it gets.
#[derive(Clone)]
enum Owner {
    /// It takes the first request, is lost after this time, and cannot be reached afterwards.
    LostAfter(Duration),
    /// It lets each request wait for this time and says then that it does not own the shards.
    GivesUpAfter(Duration),
    /// It refuses each request with this status.
    Refuses(u16),
    Answers(PeerEdge),
}

/// A network of owners. After an answer or the loss of the first one, the next one is the owner, if there is one.
struct Net {
    owners: BTreeMap<i32, Owner>,
    view: View,
    sent: Arc<AtomicU32>,
}

struct ToOwner {
    owner: Owner,
    view: View,
    next: Option<Arc<Nodes>>,
}

impl PeerNet for Net {
    fn connect<'a>(&'a self, node: &'a Node) -> NetFuture<'a, Option<Box<dyn PeerLink>>> {
        let next = self.owners.contains_key(&NEXT).then(|| owned_by(NEXT, "next:1"));
        let next = next.filter(|_| node.id == FIRST);
        let owner = self.owners[&node.id].clone();
        Box::pin(async move {
            let before = self.sent.fetch_add(1, Ordering::Relaxed);
            if matches!(owner, Owner::LostAfter(_)) && before > 0 {
                return None;
            }
            let link: Box<dyn PeerLink> = Box::new(ToOwner { owner, view: self.view.clone(), next });
            Some(link)
        })
    }
}

impl PeerLink for ToOwner {
    fn send(self: Box<Self>, request: Request<RequestBody>, _: bool) -> NetFuture<'static, PeerReply> {
        Box::pin(async move {
            let reply = match self.owner {
                Owner::LostAfter(time) => {
                    sleep(time).await;
                    PeerReply::Lost("the connection was reset".to_owned())
                }
                Owner::GivesUpAfter(time) => {
                    sleep(time).await;
                    let refusal = Response::builder().status(421).header("x-longshore-not-owner", "1");
                    PeerReply::Answered(refusal.body(Body::empty()).unwrap())
                }
                Owner::Refuses(status) => {
                    PeerReply::Answered(Response::builder().status(status).body(Body::empty()).unwrap())
                }
                Owner::Answers(edge) => {
                    let answered = edge.response(request.map(Body::new));
                    PeerReply::Answered(as_connection([10, 0, 0, 1].into(), answered).await)
                }
            };
            if let Some(next) = self.next {
                self.view.send_replace(next);
            }
            reply
        })
    }
}

/// A node that does not own the shards, with what is behind it.
struct Standby {
    cluster: Cluster,
    sent: Arc<AtomicU32>,
}

impl Standby {
    fn over(view: &View, owners: impl IntoIterator<Item = (i32, Owner)>) -> Self {
        let sent = Arc::<AtomicU32>::default();
        let net = Net { owners: owners.into_iter().collect(), view: view.clone(), sent: Arc::clone(&sent) };
        Self { cluster: node(view, ASKED, 0, Arc::new(net)), sent }
    }

    /// The status of the response, its body, and how long it took.
    async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value, Duration) {
        self.send(request(method, path, Some(&format!("Bearer {ADMIN}")), body.to_owned())).await
    }

    async fn send(&self, request: Request<Body>) -> (u16, Value, Duration) {
        let began = Instant::now();
        let answered = self.cluster.edge(Surface::All).response(request);
        let response = as_connection([10, 0, 0, 7].into(), answered).await;
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default(), began.elapsed())
    }
}

fn view() -> View {
    watch::channel(owned_by(FIRST, "first:1")).0
}

fn node(view: &View, id: i32, lease_checks: u32, net: Arc<dyn PeerNet>) -> Cluster {
    let seat = Seat { id, nodes: view.subscribe(), lease_checks: AtomicU32::new(lease_checks) };
    let settings = HttpSettings::default();
    Cluster::over(Arc::new(seat), PeerSecret::new("secret"), &settings, net, Arc::new(TokioRuntime))
}

/// An owner with the routes of `direct`, whose lease lasts for `lease_checks` looks at it.
fn owner(direct: &Direct, view: &View, id: i32, lease_checks: u32) -> Owner {
    let net = Net { owners: BTreeMap::new(), view: view.clone(), sent: Arc::default() };
    let cluster = node(view, id, lease_checks, Arc::new(net));
    cluster.own(&direct.edge, Duration::ZERO);
    Owner::Answers(cluster.peer_edge())
}

fn is_about(took: Duration, expected: Duration) -> bool {
    (expected..expected + PAUSES).contains(&took)
}

#[tokio::test(start_paused = true)]
async fn a_request_that_a_lost_owner_may_have_got_is_not_known_if_no_other_answers() {
    for (method, path, after_s, sent) in [
        ("GET", "/v2/demo/status/j", 10, 2..),
        ("POST", "/v2/demo/run", 10, 2..),
        // One that may not be sent again.
        ("POST", "/v1/endpoints", 0, 1..),
        ("POST", "/v2/demo/purge-queue", 0, 1..),
    ] {
        let standby = Standby::over(&view(), [(FIRST, Owner::LostAfter(Duration::from_secs(3)))]);
        let (status, body, took) = standby.ask(method, path, r#"{"input":{}}"#).await;
        assert_eq!((status, &body["code"]), (503, &Value::from("not_known")), "{method} {path}");
        assert!(is_about(took, Duration::from_secs(3 + after_s)), "{method} {path}: {took:?}");
        assert!(sent.contains(&standby.sent.load(Ordering::Relaxed)), "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_a_lost_owner_may_have_made_is_not_told_as_refused() {
    for (method, path, refused, expected) in [
        ("POST", "/v2/demo/run", 429, 503),
        ("POST", "/v2/demo/cancel/j", 429, 503),
        ("POST", "/v2/demo/run", 401, 503),
        // The owner looks at these after the key and the limits.
        ("POST", "/v2/demo/run", 400, 400),
        ("GET", "/v2/demo/health", 429, 429),
    ] {
        let first = (FIRST, Owner::LostAfter(Duration::from_secs(3)));
        let standby = Standby::over(&view(), [first, (NEXT, Owner::Refuses(refused))]);
        let (status, body, _) = standby.ask(method, path, r#"{"input":{}}"#).await;
        assert_eq!(status, expected, "{method} {path}: {body}");
        assert_eq!(body["code"] == "not_known", expected == 503, "{method} {path}: {body}");

        // No owner has got it before.
        let standby = Standby::over(&view(), [(FIRST, Owner::Refuses(refused))]);
        assert_eq!(standby.ask(method, path, r#"{"input":{}}"#).await.0, refused, "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_ping_that_is_sent_again_does_not_count_as_one_more_without_the_job() {
    let direct = Direct::start().await;
    let token = direct.engine.worker_token(&direct.endpoint);
    let submitted = direct.ask("POST", "/v2/demo/run", r#"{"input":{}}"#).await.json();
    let status = format!("/v2/demo/status/{}", submitted["id"].as_str().unwrap());
    let state = async || direct.ask("GET", &status, "").await.json()["status"].clone();
    let of_worker = |path: &str| request("GET", &format!("/v2/demo/{path}/w"), Some(&token), String::new());
    direct.send(of_worker("job-take")).await;
    for _ in 0..2 {
        let view = view();
        let first = (FIRST, Owner::LostAfter(Duration::from_secs(1)));
        let standby = Standby::over(&view, [first, (NEXT, owner(&direct, &view, NEXT, u32::MAX))]);
        assert_eq!(standby.send(of_worker("ping")).await.0, 200);
        assert_eq!(standby.sent.load(Ordering::Relaxed), 2);
    }
    assert_eq!(state().await, "IN_PROGRESS");
    for _ in 0..2 {
        direct.send(of_worker("ping")).await;
    }
    assert_eq!(state().await, "IN_QUEUE");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_every_owner_gives_up_is_refused_after_five_of_them() {
    let standby = Standby::over(&view(), [(FIRST, Owner::GivesUpAfter(Duration::from_secs(20)))]);
    let (status, body, took) = standby.ask("POST", "/v2/demo/runsync", r#"{"input":{}}"#).await;
    assert_eq!((status, &body["code"]), (503, &Value::from("no_owner")), "{body}");
    assert_eq!(standby.sent.load(Ordering::Relaxed), 6);
    assert!((Duration::from_mins(2)..Duration::from_secs(126)).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_sent_again_lasts_for_what_is_left_of_it() {
    let direct = Direct::start().await;
    let submitted = direct.ask("POST", "/v2/demo/run", r#"{"input":{}}"#).await.json();
    let status_sync = format!("/v2/demo/status-sync/{}", submitted["id"].as_str().unwrap());
    for (method, path) in [("POST", "/v2/demo/runsync"), ("GET", &status_sync)] {
        for (wait_s, lost_after_s, expected_s) in [(60, 40, 60), (30, 40, 40)] {
            let view = view();
            let first = Owner::LostAfter(Duration::from_secs(lost_after_s));
            let standby =
                Standby::over(&view, [(FIRST, first), (NEXT, owner(&direct, &view, NEXT, u32::MAX))]);
            let mut asked = request(
                method,
                &format!("{path}?wait={wait_s}000"),
                Some(&format!("Bearer {ADMIN}")),
                r#"{"input":{}}"#.to_owned(),
            );
            // Clients cannot say that they have waited.
            asked.headers_mut().insert("x-longshore-waited", 59_000.into());
            let (status, body, took) = standby.send(asked).await;
            assert_eq!((status, &body["status"]), (200, &Value::from("IN_QUEUE")), "{path}: {body}");
            assert!(is_about(took, Duration::from_secs(expected_s)), "{path}: {took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_owner_answers_after_its_lease_is_sent_again_where_a_second_request_changes_nothing_more() {
    let direct = Direct::start().await;
    let jobs = async || {
        let health = direct.ask("GET", "/v2/demo/health", "").await.json();
        health["jobs"]["inQueue"].as_u64().unwrap()
    };
    for (method, path, expected) in [
        ("GET", "/v2/demo/health", 200),
        ("POST", "/v2/demo/run", 200),
        ("POST", "/v2/demo/purge-queue", 503),
    ] {
        let view = view();
        let owners =
            [(FIRST, owner(&direct, &view, FIRST, 1)), (NEXT, owner(&direct, &view, NEXT, u32::MAX))];
        let standby = Standby::over(&view, owners);
        let (status, body, _) = standby.ask(method, path, r#"{"input":{}}"#).await;
        assert_eq!(status, expected, "{method} {path}: {body}");
        assert_eq!(body["code"] == "not_known", expected == 503, "{method} {path}: {body}");
        assert_eq!(standby.sent.load(Ordering::Relaxed), if expected == 503 { 1 } else { 2 }, "{path}");
        // The second submit found the job of the first one, and the purge took effect.
        assert_eq!(jobs().await, u64::from(path.ends_with("run")), "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_packets_to_the_owner_are_dropped_answers_after_10_s() {
    // Packets that open a connection are dropped while the queue of connections that are not accepted is full.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    while let Ok(connected) = timeout(Duration::from_millis(100), TcpStream::connect(address)).await {
        queued.push(connected.unwrap());
        assert!(queued.len() < 16, "the queue is never full");
    }

    let view = watch::channel(owned_by(FIRST, &address.to_string())).0;
    let seat = Seat { id: ASKED, nodes: view.subscribe(), lease_checks: AtomicU32::new(0) };
    let (secret, settings) = (PeerSecret::new("secret"), HttpSettings::default());
    let cluster = Cluster::new(Arc::new(seat), secret, PeerTls::default(), &settings);
    let standby = Standby { cluster, sent: Arc::default() };
    let (status, body, took) = standby.ask("POST", "/v2/demo/run", r#"{"input":{}}"#).await;
    assert_eq!((status, &body["code"]), (503, &Value::from("no_owner")), "{body}");
    assert!(is_about(took, Duration::from_secs(10)), "{took:?}");
}
