//! Passes a request on to the owner, and again to the next owner where that is safe.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, Version};
use http_body::Body as _;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use longshore_engine::RequestBody;
use longshore_model::{JobId, Node, RequestNo};
use longshore_planted::{Bug, planted};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

use super::classify::{Class, GoesOn, Repeat, is_read};
use super::local::LeaseLoss;
use super::net::PeerReply;
use super::peer_body::{PeerBody, Source};
use super::peer_head::{LOST_LEASE, NOT_OWNER, PEER, POST, PeerHead, WAITED, number_value};
use super::{Cluster, ClusterInner};
use crate::gate::peer::{self, ChosenJob, Peer};
use crate::lb::request_head::remove_hop_by_hop;
use crate::services::node_status::Passed;
use crate::wire::api_error::ApiError;
use crate::wire::body;
use crate::wire::frames::{FRAMES, FramesFrom};
use crate::{Edge, Surface, openai, workers};

/// How many owners a request may lose.
pub(super) const LOSSES_MAX: u32 = 5;
/// The pause before another attempt, in ms: random between these two.
const PAUSE_MS: (u64, u64) = (20, 200);
/// How often a request looks for an owner that it has not been told of.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// An owner that refused a request after this time had begun with it.
const WAITED_MIN: Duration = Duration::from_secs(1);

/// The largest body that is kept for any request, in bytes.
const SMALL_BODY_BYTES: u64 = 64 * 1024;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// A request that is passed on.
pub(super) struct Passage {
    pub(super) head: Parts,
    pub(super) source: Source,
    /// The share of the kept body in the budget.
    _permit: Option<OwnedSemaphorePermit>,
    pub(super) class: Class,
    pub(super) surface: Surface,
    job: Option<JobId>,
    /// The number by which owners know the request when it is sent again; `None` if they need none.
    number: Option<RequestNo>,
    /// When an owner may have got the submit for the first time; `None` before that.
    sent_at: Option<Instant>,
    /// When an owner first let it wait, or may have; `None` before that.
    waits_since: Option<Instant>,
    /// Whether it may be sent again after an owner was lost with it.
    may_repeat: bool,
    /// The client's side of an upgrade; `None` if the client asks for none.
    on_upgrade: Option<OnUpgrade>,
    /// Whether the client knows interim responses, as those of HTTP/1.1 do.
    takes_interims: bool,
}

/// The node that has to answer.
pub(super) enum Answerer {
    /// This node, with its own routes.
    Own(Edge),
    Owner(Node),
}

/// What became of one attempt.
pub(super) enum SendOutcome {
    Answered(Response),
    /// The node got nothing: it could not be reached.
    Unsent,
    /// The node changed nothing: it is not the owner, or no longer.
    NotOwner,
    /// It is not known what the node did.
    Lost,
}

impl Cluster {
    /// Passes a request on to the owner. Must be called in the task of its connection.
    pub(super) async fn pass_on(&self, class: Class, surface: Surface, request: Request) -> Response {
        let keeps = workers::asks_to_keep(request.headers());
        let is_openai = openai::is_address(request.uri().path());
        let response = match self.prepare(class, surface, request).await {
            Ok(passage) if class.is_poll() => tokio::select! {
                biased;
                response = self.passed(passage) => response,
                // A job that is handed out at this moment comes back: its delivery is not confirmed.
                () = self.stopping() => Ok(StatusCode::NO_CONTENT.into_response()),
            },
            Ok(passage) => self.passed(passage).await,
            Err(error) => Err(error),
        };
        let response = response.unwrap_or_else(|error| {
            let response = error.into_response();
            if is_openai { openai::reshape(response) } else { response }
        });
        if class.closes { workers::closing_unless(keeps, response) } else { response }
    }

    /// Reads the body if a repetition may need it, and chooses the id of the job.
    async fn prepare(
        &self,
        class: Class,
        surface: Surface,
        mut request: Request,
    ) -> Result<Passage, ApiError> {
        let is_upgrade = request.headers().contains_key(UPGRADE);
        let on_upgrade = is_upgrade.then(|| hyper::upgrade::on(&mut request));
        let (mut head, body) = request.into_parts();
        let takes_interims = head.version >= Version::HTTP_11;
        let job = match class.repeat {
            Repeat::Submit { sync } => Some(self.mint_job(sync)),
            _ => None,
        };
        let is_numbered = class.repeat == Repeat::Post;
        let number = is_numbered.then(|| RequestNo::from_entropy(self.shared.runtime.entropy() as u64));
        let may_repeat = match class.repeat {
            Repeat::Always | Repeat::Submit { .. } | Repeat::Post => true,
            Repeat::WithoutBody => body.is_end_stream(),
            Repeat::Never => false,
        };
        // A small one is kept for every request, for an attempt that reached no owner.
        let is_small = body.size_hint().upper().is_some_and(|bytes| bytes <= SMALL_BODY_BYTES);
        let is_kept = may_repeat || is_small;
        let (source, permit) = if is_kept {
            let budget = self.shared.budget.for_reports();
            let bytes_max = class.body_bytes_max.max(SMALL_BODY_BYTES as usize);
            let read = body::read(body, bytes_max, &budget).await?;
            (Source::Kept(read.bytes), Some(read.permit))
        } else {
            (Source::passing(body), None)
        };
        let is_chunked = matches!(source, Source::Passing(_)) && head.headers.contains_key(TRANSFER_ENCODING);
        if class.hands_over {
            peer::hands_over();
        }
        clean(&mut head, is_upgrade, is_kept);
        if is_chunked {
            // Without it, hyper sends a GET or HEAD without its body.
            head.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        if let Some(value) = number.and_then(number_value) {
            head.headers.insert(POST, value);
        }
        if class.goes_on == GoesOn::Frames {
            head.headers.insert(FRAMES, frames_from(FramesFrom::default()));
        }
        Ok(Passage {
            head,
            source,
            _permit: permit,
            class,
            surface,
            job,
            number,
            sent_at: None,
            waits_since: None,
            may_repeat,
            on_upgrade,
            takes_interims,
        })
    }

    async fn passed(&self, mut passage: Passage) -> Result<Response, ApiError> {
        let counts = &self.shared.status;
        let mut deadline = Instant::now() + passage.class.patience;
        let mut losses = 0;
        loop {
            let Some(answerer) = self.answerer(passage.surface, deadline).await else {
                if passage.sent_at.is_some() {
                    counts.count(Passed::Unknown);
                    return Err(interrupted());
                }
                counts.count(Passed::Ownerless);
                let text = "the owner of the shards cannot be reached, or is gone and no node has taken over yet; the request changed nothing";
                return Err(ApiError::unavailable("no_owner", text));
            };
            let owner = match answerer {
                Answerer::Own(routes) => return self.answer_here(&routes, passage).await,
                Answerer::Owner(owner) => owner,
            };
            let Some(request) = passage.request(&owner, &self.shared.secret) else {
                counts.count(Passed::Ownerless);
                let text =
                    "the owner of the shards changed while the request was sent; the request changed nothing";
                return Err(ApiError::unavailable("no_owner", text));
            };
            let was_sent = passage.sent_at.is_some();
            let asked_at = Instant::now();
            let outcome = self.attempt(&owner, request, passage.takes_interims).await;
            if !matches!(outcome, SendOutcome::Unsent | SendOutcome::NotOwner) {
                passage.sent_at.get_or_insert(asked_at);
                passage.waits_since.get_or_insert(asked_at);
            }
            match outcome {
                SendOutcome::Answered(response)
                    if was_sent && passage.is_change() && is_refused_at_the_gate(&response) =>
                {
                    counts.count(Passed::Unknown);
                    return Err(interrupted());
                }
                SendOutcome::Answered(response) => {
                    counts.count(Passed::Answered);
                    let on_upgrade = passage.on_upgrade.take();
                    let response = self.response(response, owner.id, on_upgrade);
                    return Ok(self.continued(response, passage));
                }
                // An owner that stops says so after it has waited for the job.
                SendOutcome::NotOwner if asked_at.elapsed() >= WAITED_MIN && losses < LOSSES_MAX => {
                    losses += 1;
                    passage.waits_since.get_or_insert(asked_at);
                    deadline = Instant::now() + passage.class.patience;
                }
                SendOutcome::NotOwner | SendOutcome::Unsent => {}
                SendOutcome::Lost if passage.may_repeat && losses < LOSSES_MAX => {
                    losses += 1;
                    counts.count(Passed::Repeated);
                    deadline = Instant::now() + passage.class.patience;
                    if let Repeat::Submit { sync } = passage.class.repeat
                        && planted(Bug::NewIdOnRepeat)
                    {
                        passage.job = Some(self.mint_job(sync));
                    }
                }
                SendOutcome::Lost => {
                    counts.count(Passed::Unknown);
                    return Err(interrupted());
                }
            }
            sleep(self.pause()).await;
        }
    }

    /// An id for the job of a submit, larger than those before it on this node.
    fn mint_job(&self, sync: bool) -> JobId {
        let ClusterInner { runtime, last_tick, .. } = self.shared.as_ref();
        let now = runtime.wall_clock().0 << 12;
        let next = |last: u64| now.max(last + 1);
        let (Ok(last) | Err(last)) =
            last_tick.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        JobId::mint_at(next(last), runtime.entropy() as u64, sync)
    }

    /// A random pause before another attempt.
    pub(super) fn pause(&self) -> Duration {
        let (least, most) = PAUSE_MS;
        Duration::from_millis(least + self.shared.runtime.entropy() as u64 % (most - least))
    }

    /// Waits until this node stops.
    async fn stopping(&self) {
        // The sender lives as long as this value.
        let _ = self.shared.is_stopping.subscribe().wait_for(|is_stopping| *is_stopping).await;
    }

    /// This node has taken over while the request waited.
    async fn answer_here(&self, routes: &Edge, passage: Passage) -> Result<Response, ApiError> {
        let Some(body) = passage.source.body() else {
            let text = "this node has taken over while the request was sent; the request changed nothing";
            return Err(ApiError::unavailable("no_owner", text));
        };
        let (current, job) = (Peer::current(), passage.chosen_job());
        let was_sent = passage.sent_at.is_some();
        let may_be_in_effect = was_sent && passage.is_change();
        if let Some(client) = current {
            peer::set_client(client, job);
        }
        peer::set_number(passage.number);
        peer::set_waited(passage.waited());
        let request = Request::from_parts(passage.head, Body::new(body));
        let answered = self.within_lease(routes, request).await;
        if let Some(client) = current {
            peer::set_client(client, None);
        }
        peer::set_number(None);
        peer::set_waited(Duration::ZERO);
        match answered {
            Ok(response) if may_be_in_effect && is_refused_at_the_gate(&response) => Err(interrupted()),
            Ok(response) => Ok(response),
            Err(LeaseLoss::Before) if !was_sent => {
                let text = "this node has lost its lease; the request changed nothing";
                Err(ApiError::unavailable("no_owner", text))
            }
            Err(LeaseLoss::Before) => Err(interrupted()),
            Err(LeaseLoss::During) => Err(LeaseLoss::During.error()),
        }
    }

    /// Waits for an owner.
    pub(super) async fn answerer(&self, surface: Surface, deadline: Instant) -> Option<Answerer> {
        loop {
            if let Some(routes) = self.routes(surface) {
                return Some(Answerer::Own(routes));
            }
            if let Some(owner) = self.owner().filter(|owner| owner.id != self.id()) {
                return (Instant::now() < deadline).then_some(Answerer::Owner(owner));
            }
            if Instant::now() >= deadline {
                return None;
            }
            sleep(LOOK_INTERVAL).await;
        }
    }

    pub(super) async fn attempt(
        &self,
        owner: &Node,
        request: http::Request<RequestBody>,
        takes_interims: bool,
    ) -> SendOutcome {
        let link = tokio::select! {
            biased;
            link = self.shared.net.connect(owner) => match link {
                Some(link) => link,
                None => return SendOutcome::Unsent,
            },
            () = self.superseded(owner.id) => return SendOutcome::NotOwner,
        };
        let sent = tokio::select! {
            biased;
            sent = link.send(request, takes_interims) => sent,
            () = self.superseded(owner.id) => return SendOutcome::Lost,
        };
        match sent {
            PeerReply::Answered(response) if response.headers().contains_key(NOT_OWNER) => {
                SendOutcome::NotOwner
            }
            PeerReply::Answered(response) if response.headers().contains_key(LOST_LEASE) => SendOutcome::Lost,
            PeerReply::Answered(response) => SendOutcome::Answered(response),
            PeerReply::Unsent => SendOutcome::Unsent,
            PeerReply::Lost(error) => {
                tracing::debug!(%error, owner = %owner.name, "the owner was lost while it answered");
                SendOutcome::Lost
            }
        }
    }

    /// Waits until another node owns the shards.
    fn superseded(&self, owner: i32) -> impl Future<Output = ()> + Send + use<> {
        let mut nodes = self.membership().nodes();
        async move {
            let is_other = nodes.wait_for(|nodes| nodes.owner.as_ref().is_some_and(|now| now.id != owner));
            if is_other.await.is_err() {
                // The membership has ended with the server.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The owner's response, for the client.
    pub(super) fn response(
        &self,
        mut response: Response,
        owner: i32,
        on_upgrade: Option<OnUpgrade>,
    ) -> Response {
        let is_switch = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let upgraded = is_switch.then(|| hyper::upgrade::on(&mut response));
        let (mut parts, body) = response.into_parts();
        parts.version = Version::HTTP_11;
        if let (Some(owner), Some(client)) = (upgraded, on_upgrade) {
            tunnel(client, owner);
            return Response::from_parts(parts, Body::empty());
        }
        for name in [CONNECTION, KEEP_ALIVE, TRANSFER_ENCODING, UPGRADE] {
            parts.headers.remove(name);
        }
        let body = PeerBody::new(body, self.superseded(owner));
        Response::from_parts(parts, Body::new(body))
    }
}

impl Passage {
    /// Whether the request may change something.
    fn is_change(&self) -> bool {
        !is_read(&self.head.method)
    }

    /// The id of the job that the request submits; `None` if it submits none.
    pub(super) fn chosen_job(&self) -> Option<ChosenJob> {
        // At least 1: the request was sent before.
        let sent_ms_ago = self.sent_at.map_or(0, |sent_at| sent_at.elapsed().as_millis().max(1) as u64);
        self.job.map(|id| ChosenJob { id, sent_ms_ago })
    }

    /// How long it has waited at owners that did not answer.
    fn waited(&self) -> Duration {
        self.waits_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// The request for an attempt; `None` if its body was read before.
    pub(super) fn request(
        &self,
        owner: &Node,
        secret: &super::PeerSecret,
    ) -> Option<http::Request<RequestBody>> {
        let head = PeerHead::of_client(owner.id, self.surface, self.chosen_job());
        let mut request = http::Request::new(self.source.body()?);
        *request.method_mut() = self.head.method.clone();
        *request.uri_mut() = self.head.uri.clone();
        *request.headers_mut() = self.head.headers.clone();
        let value = head.value(secret, &self.head.method, &self.head.uri)?;
        request.headers_mut().insert(PEER, value);
        if self.waits_since.is_some() {
            let waited_ms = self.waited().as_millis() as u64;
            request.headers_mut().insert(WAITED, HeaderValue::from(waited_ms));
        }
        Some(request)
    }
}

/// Removes what concerns the client's connection.
fn clean(head: &mut Parts, is_upgrade: bool, is_kept: bool) {
    let headers: &mut HeaderMap = &mut head.headers;
    let upgrade = headers.get(UPGRADE).cloned().filter(|_| is_upgrade);
    let authority = head.uri.authority().and_then(|it| HeaderValue::try_from(it.as_str()).ok());
    if headers.contains_key(TRANSFER_ENCODING) || is_kept {
        headers.remove(CONTENT_LENGTH);
    }
    // Only nodes may ask for frames, number posts, and say how long a request has waited.
    remove_hop_by_hop(headers, |name| [EXPECT, TRANSFER_ENCODING, FRAMES, POST, WAITED].contains(name));
    // The owner keeps its connection to this node, even if the client asks for a close.
    headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
    if let Some(upgrade) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, upgrade);
    }
    if let Some(authority) = authority {
        headers.insert(HOST, authority);
    }
    if !headers.contains_key(HOST) {
        // A client of HTTP/1.0 may send none, and HTTP/1.1 needs one.
        headers.insert(HOST, HeaderValue::from_static("longshore"));
    }
    head.uri = head.uri.path_and_query().cloned().map_or_else(|| Uri::from_static("/"), Uri::from);
    head.version = Version::HTTP_11;
}

/// Passes bytes between a client and the owner after both have left HTTP.
fn tunnel(client: OnUpgrade, owner: OnUpgrade) {
    peer::set_tunnel(Box::pin(async move {
        let (Ok(client), Ok(owner)) = tokio::join!(client, owner) else { return };
        let (mut client, mut owner) = (TokioIo::new(client), TokioIo::new(owner));
        // The owner ends a tunnel that is silent for too long.
        let _ = tokio::io::copy_bidirectional(&mut client, &mut owner).await;
    }));
}

/// The header that asks for frames.
pub(super) fn frames_from(from: FramesFrom) -> HeaderValue {
    // Digits and spaces are always a value.
    HeaderValue::try_from(from.to_text()).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Whether a key or a limit was refused before the operation began. A node that gets a request again does not look then whether an
/// earlier attempt took effect.
fn is_refused_at_the_gate(response: &Response) -> bool {
    matches!(
        response.status(),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
    )
}

/// The owner was lost with a request that may have taken effect.
fn interrupted() -> ApiError {
    let text = "the node that owned the shards was lost before it answered; it is not known whether the request took effect: \
        read the state, then repeat it";
    ApiError::unavailable("not_known", text)
}
