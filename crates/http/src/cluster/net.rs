//! The way from a node to the others: sockets, or what a simulator has in their place.

use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use longshore_engine::{Link, Links, RequestBody};
use longshore_model::Node;
use tokio::time::Instant;

use super::peer_tls::PeerTls;
use crate::gate::interim::Interims;

/// The future of a step on the way to another node.
pub type NetFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The way from a node to the others.
pub trait PeerNet: Send + Sync + 'static {
    /// Returns a connection to a node for one request; `None` if the node cannot be reached. Cancel-safe.
    fn connect<'a>(&'a self, node: &'a Node) -> NetFuture<'a, Option<Box<dyn PeerLink>>>;
}

/// A connection to another node.
pub trait PeerLink: Send {
    /// Sends a request and awaits the head of its response. Must be awaited in the task of the client's connection, which gets
    /// the interim responses if `takes_interims`.
    fn send(
        self: Box<Self>,
        request: http::Request<RequestBody>,
        takes_interims: bool,
    ) -> NetFuture<'static, PeerReply>;
}

/// What became of a request to another node.
#[derive(Debug)]
pub enum PeerReply {
    /// The node answered. The body ends with an error if the node is lost.
    Answered(Response),
    /// The node got nothing of the request.
    Unsent,
    /// It is not known what the node did. The text says how it was lost.
    Lost(String),
}

/// Connections over TCP, encrypted or not.
pub(super) struct TcpNet {
    tls: PeerTls,
    /// The connections to the owner, by its id.
    links: Mutex<Option<(i32, Arc<Links>)>>,
}

impl TcpNet {
    pub(super) fn new(tls: PeerTls) -> Self {
        Self { tls, links: Mutex::default() }
    }

    async fn links(&self, owner: &Node) -> Option<Arc<Links>> {
        let known = || self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, links)) = known().as_ref().filter(|(id, _)| *id == owner.id) {
            return Some(Arc::clone(links));
        }
        let links = Arc::new(self.tls.links(&owner.address).await?);
        *known() = Some((owner.id, Arc::clone(&links)));
        Some(links)
    }
}

impl PeerNet for TcpNet {
    fn connect<'a>(&'a self, node: &'a Node) -> NetFuture<'a, Option<Box<dyn PeerLink>>> {
        Box::pin(async move {
            let links = self.links(node).await?;
            let link = links.link(Instant::now()).await.ok()?;
            let link: Box<dyn PeerLink> = Box::new(TcpLink { link, links });
            Some(link)
        })
    }
}

struct TcpLink {
    link: Link,
    links: Arc<Links>,
}

impl PeerLink for TcpLink {
    fn send(
        self: Box<Self>,
        mut request: http::Request<RequestBody>,
        takes_interims: bool,
    ) -> NetFuture<'static, PeerReply> {
        let Self { mut link, links } = *self;
        Box::pin(async move {
            let interims = takes_interims.then(|| Interims::of(&mut request));
            let sent = {
                let sending = pin!(link.sender().try_send_request(request));
                match interims {
                    Some(interims) => interims.relay(sending, |_| ()).await,
                    None => sending.await,
                }
            };
            match sent {
                Ok(response) => PeerReply::Answered(
                    response.map(|inner| Body::new(LinkBody { inner, link: Some((link, links)) })),
                ),
                Err(mut error) => match error.take_message() {
                    Some(_) => PeerReply::Unsent,
                    None => PeerReply::Lost(error.error().to_string()),
                },
            }
        })
    }
}

/// The body of a response, which gives its connection back.
struct LinkBody {
    inner: Incoming,
    /// `None` after the body has ended.
    link: Option<(Link, Arc<Links>)>,
}

impl LinkBody {
    /// The connection serves further requests.
    fn keep_link(&mut self) {
        if let Some((link, links)) = self.link.take() {
            links.keep_idle(Instant::now(), link);
        }
    }
}

impl HttpBody for LinkBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(None) => {
                self.keep_link();
                Poll::Ready(None)
            }
            polled => polled.map_err(io::Error::other),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for LinkBody {
    fn drop(&mut self) {
        if self.inner.is_end_stream() {
            self.keep_link();
        }
    }
}
