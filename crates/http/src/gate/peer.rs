//! The other end of a connection, and the progress of its request.
//!
//! A task-local of the connection's task, which handles all of the connection's requests. Carried in each request
//! instead, it would cost three allocations per request.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::Poll;
use std::time::Duration;

use http::HeaderValue;
use longshore_engine::ClientAddress;
use longshore_model::{JobId, RequestNo};

use crate::wire::frames::FramesFrom;

tokio::task_local! {
    /// Boxed: each poll moves it into the task-local's place and out again.
    static CONNECTION: Box<ConnectionContext>;
}

/// What a connection's task knows about its connection.
struct ConnectionContext {
    /// The client of the current request, which another node may have passed on.
    peer: Cell<Peer>,
    request: Cell<RequestProgress>,
    /// The number of requests so far, wrapping.
    requests: Cell<u32>,
    /// Whether the current request has no response yet, or one that goes on.
    is_open: Cell<bool>,
    /// The id of the job that the current request submits, if another node chose it.
    job: Cell<Option<ChosenJob>>,
    /// The number of the current request, if another node gave it one.
    number: Cell<Option<RequestNo>>,
    /// How long the current request has waited at other owners, if another node passes it on.
    waited: Cell<Duration>,
    /// How the stream of an OpenAI client is answered, if another node passes it on.
    frames: Cell<Option<FramesFrom>>,
    /// What the connection does after it was upgraded.
    tunnel: Cell<Option<BoxTunnel>>,
    /// An interim response that the connection has not begun to write; empty: none.
    interim: RefCell<Vec<u8>>,
    /// The text of an address, from the first request on that is forwarded.
    address: RefCell<Option<(IpAddr, HeaderValue)>>,
}

/// The life of an upgraded connection.
pub(crate) type BoxTunnel = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The progress of a connection's current request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestProgress {
    /// The request has not arrived, or not all of it.
    #[default]
    Coming,
    /// The whole request has arrived, and its response is being made.
    Whole,
    /// As `Whole`, for a client of HTTP/1.0, which knows no interim response such as `100 Continue`.
    WholeOfOld,
    /// The whole request has arrived, and its response is for connected clients only.
    HandsOver,
}

/// The id of a job that another node chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChosenJob {
    pub(crate) id: JobId,
    /// How long ago an owner may have got the submit for the first time, in ms; 0 if this is the first time.
    pub(crate) sent_ms_ago: u64,
}

impl ChosenJob {
    /// Whether an owner may have got the submit before.
    pub(crate) fn is_repeated(&self) -> bool {
        self.sent_ms_ago > 0
    }
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) caller: ClientAddress,
    /// The connection is encrypted up to this server.
    pub(crate) is_tls: bool,
}

impl Peer {
    /// A client at this address.
    pub(crate) fn new(address: IpAddr, is_tls: bool) -> Self {
        /// Random per process, so that no client can choose an address whose fingerprint is known.
        static FINGERPRINTS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        // An IPv4 client of a dual-stack socket is the same client.
        let address = address.to_canonical();
        Self { caller: ClientAddress::new(address, FINGERPRINTS.hash_one(address)), is_tls }
    }

    /// The client of the current request; `None` outside of a connection.
    pub(crate) fn current() -> Option<Self> {
        CONNECTION.try_with(|connection| connection.peer.get()).ok()
    }

    /// Runs `connection` as the task of this client's connection.
    pub(crate) fn serve<F: Future>(self, connection: F) -> impl Future<Output = F::Output> {
        CONNECTION.scope(
            Box::new(ConnectionContext {
                peer: Cell::new(self),
                request: Cell::default(),
                requests: Cell::default(),
                is_open: Cell::default(),
                job: Cell::default(),
                number: Cell::default(),
                waited: Cell::default(),
                frames: Cell::default(),
                tunnel: Cell::default(),
                interim: RefCell::default(),
                address: RefCell::default(),
            }),
            connection,
        )
    }
}

/// The address of the peer as a header's value; `None` outside of a connection.
pub(crate) fn address_header() -> Option<HeaderValue> {
    let header = CONNECTION.try_with(|connection| {
        let address = connection.peer.get().caller.address;
        let mut known = connection.address.borrow_mut();
        if let Some((_, header)) = known.as_ref().filter(|(of, _)| *of == address) {
            return Some(header.clone());
        }
        let header = HeaderValue::try_from(address.to_string()).ok()?;
        *known = Some((address, header.clone()));
        Some(header)
    });
    header.ok().flatten()
}

/// Sets who the client of the current request is, and the id of the job that it submits: another node has passed it on. No effect
/// outside of a connection.
pub(crate) fn set_client(client: Peer, job: Option<ChosenJob>) {
    let _elsewhere = CONNECTION.try_with(|connection| {
        connection.peer.set(client);
        connection.job.set(job);
    });
}

/// The id of the job that the current request submits; `None` if this server chooses it.
pub(crate) fn chosen_job() -> Option<ChosenJob> {
    CONNECTION.try_with(|connection| connection.job.get()).ok().flatten()
}

/// Sets the number of the current request; `None` if no node gave it one. No effect outside of a connection.
pub(crate) fn set_number(number: Option<RequestNo>) {
    let _elsewhere = CONNECTION.try_with(|connection| connection.number.set(number));
}

/// The number of the current request; `None` if no node gave it one.
pub(crate) fn number() -> Option<RequestNo> {
    CONNECTION.try_with(|connection| connection.number.get()).ok().flatten()
}

/// Sets how long the current request has waited at other owners. No effect outside of a connection.
pub(crate) fn set_waited(waited: Duration) {
    let _elsewhere = CONNECTION.try_with(|connection| connection.waited.set(waited));
}

/// What is left of the time for which the client of the current request lets it wait; zero if it has waited for longer.
pub(crate) fn left_of(wait: Duration) -> Duration {
    let waited = CONNECTION.try_with(|connection| connection.waited.get()).unwrap_or_default();
    wait.saturating_sub(waited)
}

/// Whether a node passes the current request on again, after an owner may have got it.
pub(crate) fn is_sent_again() -> bool {
    CONNECTION.try_with(|connection| !connection.waited.get().is_zero()).unwrap_or_default()
}

/// Sets that the current request is to be answered in frames, and from where on; `None` if it is not. No effect outside of a
/// connection.
pub(crate) fn set_frames(frames: Option<FramesFrom>) {
    let _elsewhere = CONNECTION.try_with(|connection| connection.frames.set(frames));
}

/// Where the current request goes on that is to be answered in frames; `None` if it is answered as it is.
pub(crate) fn frames() -> Option<FramesFrom> {
    CONNECTION.try_with(|connection| connection.frames.get()).ok().flatten()
}

/// The progress of the current request.
pub(crate) fn request() -> RequestProgress {
    CONNECTION.try_with(|connection| connection.request.get()).unwrap_or_default()
}

/// Sets the progress of the current request. No effect outside of a connection.
pub(crate) fn set_request(request: RequestProgress) {
    let _elsewhere = CONNECTION.try_with(|connection| connection.request.set(request));
}

/// Counts a request whose response has not ended. No effect outside of a connection.
pub(crate) fn begin_request() {
    let _elsewhere = CONNECTION.try_with(|connection| {
        connection.requests.set(connection.requests.get().wrapping_add(1));
        connection.is_open.set(true);
    });
}

/// Says that the HTTP implementation has the whole response to the current request. No effect outside of a connection.
pub(crate) fn end_response() {
    let _elsewhere = CONNECTION.try_with(|connection| connection.is_open.set(false));
}

/// The number of requests so far, wrapping; `None` while one of them has not the whole response, and outside of a connection.
pub(crate) fn answered_requests() -> Option<u32> {
    let answered =
        CONNECTION.try_with(|connection| (!connection.is_open.get()).then(|| connection.requests.get()));
    answered.ok().flatten()
}

/// Sets what the connection does after the current request has upgraded it. No effect outside of a connection.
pub(crate) fn set_tunnel(tunnel: BoxTunnel) {
    let _elsewhere = CONNECTION.try_with(|connection| connection.tunnel.set(Some(tunnel)));
}

/// Takes what the connection does after it was upgraded; `None` if it was not.
pub(crate) fn take_tunnel() -> Option<BoxTunnel> {
    CONNECTION.try_with(|connection| connection.tunnel.take()).ok().flatten()
}

/// Has the connection write an interim response, and waits until it has begun to. It is not written after the future is dropped:
/// then the final response comes. No effect outside of a connection.
pub(crate) async fn write_interim(bytes: Vec<u8>) {
    struct Withdrawal;
    impl Drop for Withdrawal {
        fn drop(&mut self) {
            drop(take_interim());
        }
    }

    let _withdrawal = Withdrawal;
    let _elsewhere = CONNECTION.try_with(|connection| connection.interim.replace(bytes));
    let is_waiting = || CONNECTION.try_with(|connection| !connection.interim.borrow().is_empty());
    // The connection wakes its task when it takes the response.
    poll_fn(|_| if is_waiting().unwrap_or_default() { Poll::Pending } else { Poll::Ready(()) }).await;
}

/// Takes the interim response that the connection is to write; `None` without one.
pub(crate) fn take_interim() -> Option<Vec<u8>> {
    let taken = CONNECTION.try_with(|connection| {
        let is_waiting = !connection.interim.borrow().is_empty();
        is_waiting.then(|| connection.interim.take())
    });
    taken.ok().flatten()
}

/// Marks the response of the current request as one that hands something over: a client that has ended its sending
/// counts as disconnected, and must not get it. No effect before the whole request has arrived.
pub(crate) fn hands_over() {
    if request() != RequestProgress::Coming {
        set_request(RequestProgress::HandsOver);
    }
}
