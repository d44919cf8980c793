//! The span of an HTTP request to this server, by the conventions of OpenTelemetry.

use super::span::{Attributes, Nanos, Span, SpanKind};

/// The attribute of a method that is none of HTTP's: a client may send any word.
pub(super) const OTHER_METHOD: &str = "_OTHER";

/// What every request to this server has in common.
pub(super) struct HttpRequest {
    /// The trace and the span's id.
    pub(super) ids: ([u8; 16], [u8; 8]),
    /// The parent's id; `None` if the request is the first of its trace.
    pub(super) parent: Option<[u8; 8]>,
    /// A method of HTTP, or [`OTHER_METHOD`].
    pub(super) method: &'static str,
    /// The pattern of the request's path.
    pub(super) route: &'static str,
    /// The status of the response.
    pub(super) status: u16,
    /// When the head of the request was read, in µs since 1970.
    pub(super) start_us: u64,
    /// When the head of the response was ready, in µs since 1970.
    pub(super) end_us: u64,
}

impl HttpRequest {
    /// The span, with `more` attributes. A response of 500 or more is an error.
    pub(super) fn into_span(self, more: Attributes) -> Span {
        let is_error = self.status >= 500;
        let mut attributes = vec![
            ("http.request.method", self.method.into()),
            ("http.route", self.route.into()),
            ("http.response.status_code", u32::from(self.status).into()),
        ];
        attributes.extend(more);
        attributes.extend(is_error.then(|| ("error.type", self.status.to_string().into())));
        let verb = if self.method == OTHER_METHOD { "HTTP" } else { self.method };
        let ((trace, id), parent) = (self.ids, self.parent);
        Span {
            trace,
            id,
            parent,
            name: format!("{verb} {}", self.route),
            kind: SpanKind::Server,
            start: Nanos(self.start_us.saturating_mul(1_000)),
            end: Nanos(self.end_us.max(self.start_us).saturating_mul(1_000)),
            attributes,
            events: Vec::new(),
            links: Vec::new(),
            is_error,
        }
    }
}
