//! The header that a node adds to what it passes on: who the client is, and that a node says so.
//!
//! ```text
//! x-longshore-peer: <node to> <client's address> <tls | plain> <all | jobs> <job | -> <ms> <HMAC-SHA-256, hexadecimal>
//! ```
//!
//! The HMAC is over the method, the path with its query, and the fields before it, under the secret of the cluster. It does not
//! cover the body: a program that can change what nodes send each other can read the keys in it, too.

use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use longshore_model::{JobId, RequestNo};
use ring::hmac;

use crate::Surface;
use crate::gate::peer::{ChosenJob, Peer};

pub(super) const PEER: HeaderName = HeaderName::from_static("x-longshore-peer");
/// On a response: this node does not own the shards, and the request changed nothing.
pub(super) const NOT_OWNER: HeaderName = HeaderName::from_static("x-longshore-not-owner");
/// On a post of chunks: the number by which the owner knows it when it is sent again.
pub(super) const POST: HeaderName = HeaderName::from_static("x-longshore-post");
/// On a request that is sent again: how long it has waited at owners, in ms. So a client that waits for a job waits no longer
/// than it asked for.
pub(super) const WAITED: HeaderName = HeaderName::from_static("x-longshore-waited");
/// On a response: the lease of this node ended while it answered, so that it is not known whether the request took effect.
pub(super) const LOST_LEASE: HeaderName = HeaderName::from_static("x-longshore-lost-lease");
/// The fields before the HMAC.
const FIELDS: usize = 6;

/// The secret of a cluster. Has no `Debug`.
#[derive(Clone)]
pub struct PeerSecret(hmac::Key);

/// What a node says of a request that it passes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerHead {
    /// The node that the request is for.
    pub(super) to: i32,
    pub(super) address: IpAddr,
    pub(super) is_tls: bool,
    pub(super) surface: Surface,
    /// The id of the job that the request submits, for the owner to use. A second request with it submits nothing.
    pub(super) job: Option<ChosenJob>,
}

impl PeerSecret {
    /// The secret from its text in the database.
    pub fn new(text: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()))
    }
}

impl PeerHead {
    /// The client of the connection that this runs in.
    pub(super) fn of_client(to: i32, surface: Surface, job: Option<ChosenJob>) -> Self {
        let peer = Peer::current();
        let address = peer.map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.caller.address);
        Self { to, address, is_tls: peer.is_some_and(|peer| peer.is_tls), surface, job }
    }

    /// The header's value; `None` never happens, since every byte of it is printable.
    pub(super) fn value(&self, secret: &PeerSecret, method: &Method, uri: &Uri) -> Option<HeaderValue> {
        let fields = self.fields();
        let tag = hmac::sign(&secret.0, &signed(method, uri, &fields));
        HeaderValue::try_from(format!("{fields} {}", const_hex::encode(tag))).ok()
    }

    /// Reads the header of a request. `None` if it has none, or one that no node of the cluster wrote.
    pub(super) fn read(secret: &PeerSecret, headers: &HeaderMap, method: &Method, uri: &Uri) -> Option<Self> {
        let (fields, tag) = headers.get(PEER)?.to_str().ok()?.rsplit_once(' ')?;
        let tag = const_hex::decode(tag).ok()?;
        hmac::verify(&secret.0, &signed(method, uri, fields), &tag).ok()?;
        let parts: [&str; FIELDS] = fields.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let [to, address, tls, surface, job, sent_ms_ago] = parts;
        let chosen = |id: JobId| Some(ChosenJob { id, sent_ms_ago: sent_ms_ago.parse().ok()? });
        Some(Self {
            to: to.parse().ok()?,
            address: address.parse().ok()?,
            is_tls: tls == "tls",
            surface: if surface == "all" { Surface::All } else { Surface::Jobs },
            job: if job == "-" { None } else { Some(chosen(job.parse().ok()?)?) },
        })
    }

    fn fields(&self) -> String {
        let tls = if self.is_tls { "tls" } else { "plain" };
        let surface = if self.surface == Surface::All { "all" } else { "jobs" };
        let job = self.job.map_or_else(|| "-".to_owned(), |job| job.id.to_string());
        let sent_ms_ago = self.job.map_or(0, |job| job.sent_ms_ago);
        format!("{} {} {tls} {surface} {job} {sent_ms_ago}", self.to, self.address)
    }
}

/// The number of a request as a header's value; `None` never happens, since it is digits.
pub(super) fn number_value(number: RequestNo) -> Option<HeaderValue> {
    HeaderValue::try_from(number.to_string()).ok()
}

/// Takes the number out of the headers of a request that a node has signed; `None` without one.
pub(super) fn take_number(headers: &mut HeaderMap) -> Option<RequestNo> {
    RequestNo::parse(headers.remove(POST)?.to_str().ok()?)
}

/// Takes out of the headers of a request that a node has signed how long it has waited at owners; zero without one.
pub(super) fn take_waited(headers: &mut HeaderMap) -> Duration {
    let value = headers.remove(WAITED);
    let waited_ms = value.and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_millis(waited_ms.unwrap_or_default())
}

fn signed(method: &Method, uri: &Uri, fields: &str) -> Vec<u8> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    format!("{method} {path}\n{fields}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_node_of_the_cluster_wrote_is_read() {
        let secret = PeerSecret::new("secret");
        let (method, uri) = (Method::POST, Uri::from_static("/v2/e/run?wait=1"));
        let chosen = ChosenJob { id: JobId::mint_at(7 << 12, 9, true), sent_ms_ago: 70_000 };
        for job in [None, Some(chosen)] {
            let head =
                PeerHead { to: 3, address: [10, 0, 0, 7].into(), is_tls: true, surface: Surface::Jobs, job };
            let value = head.value(&secret, &method, &uri).unwrap();
            let headers = HeaderMap::from_iter([(PEER, value.clone())]);
            assert_eq!(PeerHead::read(&secret, &headers, &method, &uri), Some(head));
            let other = PeerSecret::new("other");
            assert_eq!(PeerHead::read(&other, &headers, &method, &uri), None);
            assert_eq!(PeerHead::read(&secret, &headers, &Method::GET, &uri), None);
            assert_eq!(PeerHead::read(&secret, &headers, &method, &Uri::from_static("/v2/f/run")), None);
            let forged = value.to_str().unwrap().replacen("3 10.", "3 11.", 1);
            let headers = HeaderMap::from_iter([(PEER, HeaderValue::try_from(forged).unwrap())]);
            assert_eq!(PeerHead::read(&secret, &headers, &method, &uri), None);
        }
        assert_eq!(PeerHead::read(&secret, &HeaderMap::new(), &method, &uri), None);
    }
}
