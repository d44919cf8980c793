//! The span of a request that was forwarded to a worker of a load-balancing endpoint.
//!
//! Such a request has no row: its place in the trace is in memory until its response begins.

use std::sync::Arc;

use http::{Method, StatusCode};
use longshore_model::{Endpoint, TraceContext, WorkerId};

use super::http_request::{HttpRequest, OTHER_METHOD};
use super::sampling::Sampling;
use super::span::Span;

/// The place of a forwarded request in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestPlace {
    /// The span of the request, for what its worker does.
    pub context: TraceContext,
    /// The client's span; `None` if the request is the first of its trace.
    pub parent: Option<[u8; 8]>,
}

impl RequestPlace {
    /// A place below the client's span, else in a trace with a random id.
    pub(super) fn new(client: Option<TraceContext>, sampling: Sampling, entropy: impl Fn() -> u128) -> Self {
        // Ids of all zeros are no ids.
        let span = (entropy() as u64).max(1).to_be_bytes();
        if let Some(client) = client {
            let context = TraceContext::new(client.trace, span, client.is_sampled());
            return Self { context, parent: Some(client.span) };
        }
        let trace = entropy().max(1).to_be_bytes();
        Self { context: TraceContext::new(trace, span, sampling.takes(&trace)), parent: None }
    }
}

/// A request that was forwarded, or refused without a worker.
#[derive(Clone, Debug)]
pub struct ForwardedSpan {
    /// The endpoint that the request named.
    pub endpoint: Arc<Endpoint>,
    /// The place of the request in its trace.
    pub place: RequestPlace,
    /// The method of the request.
    pub method: Method,
    /// The pattern of the request's path.
    pub route: &'static str,
    /// The status of the response.
    pub status: StatusCode,
    /// The worker that responded; `None` for a response of the server.
    pub worker: Option<WorkerId>,
    /// When the head of the request was read, in µs since 1970.
    pub start_us: u64,
    /// When the head of the response was ready, in µs since 1970.
    pub end_us: u64,
}

impl ForwardedSpan {
    pub(super) fn into_span(self) -> Span {
        let mut more = vec![("longshore.endpoint", self.endpoint.id.as_str().into())];
        more.extend(self.worker.map(|worker| ("longshore.worker", worker.as_str().into())));
        let request = HttpRequest {
            ids: (self.place.context.trace, self.place.context.span),
            parent: self.place.parent,
            method: known(&self.method),
            route: self.route,
            status: self.status.as_u16(),
            start_us: self.start_us,
            end_us: self.end_us,
        };
        request.into_span(more)
    }
}

fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::CONNECT => "CONNECT",
        Method::TRACE => "TRACE",
        _ => OTHER_METHOD,
    }
}

#[cfg(test)]
mod tests {
    use super::super::span::Nanos;
    use super::*;
    use crate::supervisor::tests::an_endpoint;

    fn place(client: Option<TraceContext>, ratio: f64) -> RequestPlace {
        RequestPlace::new(client, Sampling::of_ratio(ratio), || u128::MAX / 3)
    }

    #[test]
    fn a_request_is_below_its_client_or_begins_a_trace() {
        let client = TraceContext::new([5; 16], [6; 8], false);
        let below = place(Some(client), 1.0);
        assert_eq!((below.context.trace, below.parent), ([5; 16], Some([6; 8])));
        assert!(below.context.span != [6; 8] && !below.context.is_sampled());
        let first = place(None, 1.0);
        assert!(first.parent.is_none() && first.context.is_sampled());
        assert!(!place(None, 0.0).context.is_sampled());
        let zeros = RequestPlace::new(None, Sampling::of_ratio(1.0), || 0).context;
        assert!(zeros.trace != [0; 16] && zeros.span != [0; 8]);
    }

    #[test]
    fn a_span_has_no_text_of_a_client() {
        let span = |method: Method, status, worker: Option<&str>| {
            ForwardedSpan {
                endpoint: Arc::new(an_endpoint()),
                place: place(None, 1.0),
                method,
                route: "/lb/{endpoint}/{*path}",
                status,
                worker: worker.and_then(|id| id.parse().ok()),
                start_us: 7,
                end_us: 5,
            }
            .into_span()
        };
        let own = span(Method::from_bytes(b"SECRET").unwrap(), StatusCode::BAD_GATEWAY, None);
        assert_eq!((own.name.as_str(), own.is_error), ("HTTP /lb/{endpoint}/{*path}", true));
        assert_eq!((own.start, own.end), (Nanos(7_000), Nanos(7_000)));
        assert!(own.attributes.contains(&("http.request.method", "_OTHER".into())));
        assert!(own.attributes.contains(&("error.type", "502".into())));
        let served = span(Method::GET, StatusCode::NOT_FOUND, Some("w1"));
        assert!(!served.is_error && served.attributes.contains(&("longshore.worker", "w1".into())));
    }
}
