//! Responses that have begun, and go on with the next owner when the owner is lost.
//!
//! The events of a job have numbers: the next owner is asked for those after the last one that was passed on as a whole. The stream
//! of an OpenAI client comes in frames, from which this node knows how many bytes of text its client has. The client sees a pause.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use bytes::BytesMut;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, StatusCode};
use http_body::{Body as HttpBody, Frame};
use tokio::time::{Instant, sleep};

use super::Cluster;
use super::classify::GoesOn;
use super::forward::{Answerer, LOSSES_MAX, Passage, SendOutcome, frames_from};
use crate::Edge;
use crate::gate::peer::{self, Peer};
use crate::services::node_status::Passed;
use crate::wire::frames::{FRAMES, FramesFrom, Unframing};
use crate::wire::sse::EVENT_STREAM;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

impl Cluster {
    /// The response, which goes on with the next owner if it can.
    pub(super) fn continued(&self, response: Response, passage: Passage) -> Response {
        let reading = match passage.class.goes_on {
            GoesOn::Events if has_events(&response) => Reading::Events(Events::default()),
            GoesOn::Frames if response.headers().contains_key(FRAMES) => {
                Reading::Frames(Unframing::default())
            }
            _ => return response,
        };
        let (mut parts, body) = response.into_parts();
        parts.headers.remove(FRAMES);
        let state = State::Open(body.into_data_stream());
        let body = ContinuedBody {
            cluster: self.clone(),
            passage: Some(Box::new(passage)),
            reading,
            state,
            losses: 0,
        };
        Response::from_parts(parts, Body::new(body))
    }

    /// Asks the next owner to go on; `None` if it does not, or there is none in time.
    async fn go_on(self, passage: Box<Passage>, from: GoOnFrom, mut losses: u32) -> Option<Next> {
        let deadline = Instant::now() + passage.class.patience;
        loop {
            match self.answerer(passage.surface, deadline).await? {
                Answerer::Own(routes) => {
                    let response = self.own_continuation(&routes, &passage, &from).await?;
                    if !is_asked_again(&response, deadline) {
                        return next(response, passage, losses);
                    }
                }
                Answerer::Owner(owner) => {
                    let mut request = passage.request(&owner, &self.shared.secret)?;
                    from.tell(request.headers_mut());
                    match self.attempt(&owner, request, false).await {
                        SendOutcome::Answered(response) => {
                            self.shared.status.count(Passed::Repeated);
                            let response = self.response(response, owner.id, None);
                            if !is_asked_again(&response, deadline) {
                                return next(response, passage, losses);
                            }
                        }
                        SendOutcome::Unsent | SendOutcome::NotOwner => {}
                        SendOutcome::Lost if losses < LOSSES_MAX => losses += 1,
                        SendOutcome::Lost => return None,
                    }
                }
            }
            sleep(self.pause()).await;
        }
    }

    /// This node has taken over.
    async fn own_continuation(&self, routes: &Edge, passage: &Passage, from: &GoOnFrom) -> Option<Response> {
        let mut request = Request::new(Body::new(passage.source.body()?));
        *request.method_mut() = passage.head.method.clone();
        *request.uri_mut() = passage.head.uri.clone();
        *request.headers_mut() = passage.head.headers.clone();
        request.headers_mut().remove(FRAMES);
        if let GoOnFrom::Event(_) = from {
            from.tell(request.headers_mut());
        }
        let client = Peer::current()?;
        peer::set_client(client, passage.chosen_job());
        peer::set_frames(from.frames());
        let answered = self.within_lease(routes, request).await;
        peer::set_client(client, None);
        peer::set_frames(None);
        Some(answered.unwrap_or_else(|loss| loss.error().into_response()))
    }
}

/// The continuation of a response, with what a further one needs.
type Next = (BodyDataStream, Box<Passage>, u32);

fn next(response: Response, passage: Box<Passage>, losses: u32) -> Option<Next> {
    let goes_on = match passage.class.goes_on {
        GoesOn::Events => has_events(&response),
        GoesOn::Frames => response.headers().contains_key(FRAMES),
        GoesOn::No => false,
    };
    goes_on.then(|| (response.into_body().into_data_stream(), passage, losses))
}

/// Whether the owner cannot answer now, and there is time to ask it again.
fn is_asked_again(response: &Response, deadline: Instant) -> bool {
    response.status() == StatusCode::SERVICE_UNAVAILABLE && Instant::now() < deadline
}

fn has_events(response: &Response) -> bool {
    let media = response.headers().get(CONTENT_TYPE);
    response.status() == StatusCode::OK
        && media.is_some_and(|media| media.as_bytes().starts_with(EVENT_STREAM.as_bytes()))
}

/// Where a response goes on.
enum GoOnFrom {
    /// After this event; from the begin of the request without one.
    Event(Option<u64>),
    Text(FramesFrom),
}

impl GoOnFrom {
    fn tell(&self, headers: &mut http::HeaderMap) {
        match self {
            Self::Event(Some(last)) => drop(headers.insert(LAST_EVENT_ID, HeaderValue::from(*last))),
            Self::Event(None) => {}
            Self::Text(from) => drop(headers.insert(FRAMES, frames_from(*from))),
        }
    }

    fn frames(&self) -> Option<FramesFrom> {
        match self {
            Self::Event(_) => None,
            Self::Text(from) => Some(*from),
        }
    }
}

/// What is known of a response from its bytes.
enum Reading {
    Events(Events),
    Frames(Unframing),
}

impl Reading {
    /// What may be passed on.
    fn push(&mut self, data: Bytes) -> Bytes {
        match self {
            Self::Events(events) => events.push(&data),
            Self::Frames(frames) => frames.push(data),
        }
    }

    fn has_ended(&self) -> bool {
        match self {
            Self::Events(events) => events.has_ended,
            Self::Frames(frames) => frames.has_ended,
        }
    }

    /// Forgets what was not passed on, and tells where to go on.
    fn restart(&mut self) -> GoOnFrom {
        match self {
            Self::Events(events) => {
                events.torn.clear();
                GoOnFrom::Event(events.last)
            }
            Self::Frames(frames) => {
                frames.restart();
                GoOnFrom::Text(FramesFrom { goes_on: true, ..frames.passed })
            }
        }
    }
}

/// Events, which are passed on as a whole.
#[derive(Debug, Default)]
struct Events {
    /// The begin of an event.
    torn: BytesMut,
    /// The number of the last event that was passed on.
    last: Option<u64>,
    /// Whether the last event of the job was passed on.
    has_ended: bool,
}

impl Events {
    fn push(&mut self, data: &[u8]) -> Bytes {
        self.torn.extend_from_slice(data);
        let Some(end) = self.torn.windows(2).rposition(|two| two == b"\n\n") else { return Bytes::new() };
        let whole = self.torn.split_to(end + 2).freeze();
        for line in whole.split(|byte| *byte == b'\n') {
            if let Some(id) = line.strip_prefix(b"id: ") {
                self.last = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok()).or(self.last);
            }
            self.has_ended |= matches!(line, b"event: done" | b"event: error");
        }
        whole
    }
}

enum State {
    /// An owner sends the response.
    Open(BodyDataStream),
    /// The next owner is asked.
    Asking(Pin<Box<dyn Future<Output = Option<Next>> + Send>>),
    Ended,
}

/// The body of a response that goes on.
struct ContinuedBody {
    cluster: Cluster,
    /// `None` while it is asked again.
    passage: Option<Box<Passage>>,
    reading: Reading,
    state: State,
    /// How many owners were lost since the last byte.
    losses: u32,
}

impl HttpBody for ContinuedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            match &mut self.state {
                State::Ended => return Poll::Ready(None),
                State::Open(body) => {
                    let piece = ready!(poll_data(body, context));
                    if let Some(Ok(data)) = piece {
                        let passed = self.reading.push(data);
                        if !passed.is_empty() {
                            self.losses = 0;
                            return Poll::Ready(Some(Ok(Frame::data(passed))));
                        }
                        continue;
                    }
                    if self.reading.has_ended() {
                        self.state = State::Ended;
                        return Poll::Ready(None);
                    }
                    let Some(passage) = self.passage.take().filter(|_| self.losses < LOSSES_MAX) else {
                        return self.break_off();
                    };
                    let from = self.reading.restart();
                    let asking = self.cluster.clone().go_on(passage, from, self.losses + 1);
                    self.state = State::Asking(Box::pin(asking));
                }
                State::Asking(asking) => match ready!(asking.as_mut().poll(context)) {
                    None => return self.break_off(),
                    Some((body, passage, losses)) => {
                        (self.state, self.passage, self.losses) = (State::Open(body), Some(passage), losses);
                    }
                },
            }
        }
    }
}

impl ContinuedBody {
    fn break_off(&mut self) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.state = State::Ended;
        Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())))
    }
}

fn poll_data(
    body: &mut BodyDataStream,
    context: &mut Context<'_>,
) -> Poll<Option<Result<Bytes, axum::Error>>> {
    futures_util::Stream::poll_next(Pin::new(body), context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_passed_on_as_a_whole_with_their_number() {
        let text = b"event: status\ndata: {}\n\nid: 0\ndata: {\"a\":1}\n\n: keep-alive\n\nid: 1\ndata: 2\n\nevent: done\ndata: {}\n\n";
        for step in 1..text.len() {
            let mut events = Events::default();
            let mut passed = Vec::new();
            for part in text.chunks(step) {
                let whole = events.push(part);
                assert!(whole.is_empty() || whole.ends_with(b"\n\n"));
                passed.extend_from_slice(&whole);
                let expected = match passed.len() {
                    0..41 => None,
                    41..71 => Some(0),
                    _ => Some(1),
                };
                assert_eq!(events.last, expected, "{}", passed.len());
            }
            assert!(events.has_ended && passed == text);
        }
        let mut events = Events::default();
        assert_eq!(events.push(b"id: 7\ndata: 1\n\nid: 8\ndata"), "id: 7\ndata: 1\n\n");
        let mut reading = Reading::Events(events);
        assert!(matches!(reading.restart(), GoOnFrom::Event(Some(7))));
        assert_eq!(reading.push(Bytes::from_static(b"id: 8\ndata: 2\n\n")), "id: 8\ndata: 2\n\n");
    }
}
