//! The operations of the API, each with its handler and its description. The router and the API's document are both
//! built from them, so that every route is documented. Requests that are forwarded have a description alone.

mod document;
pub(crate) mod page;
pub(crate) mod parameter;
mod responses;
pub(crate) mod schema;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodRouter, delete, get, patch, post};
use http::Method;
use serde_json::Value;

use crate::HttpState;
use crate::fast_route::FastRoute;
use parameter::Parameter;

pub(crate) use document::document;

/// The operations on one kind of resource.
pub(crate) struct Group {
    /// The tag of the operations in the document.
    pub name: &'static str,
    /// The description of the tag, in a sentence or two.
    pub about: &'static str,
    /// The operations, in the order of the HTML page.
    pub operations: Vec<Operation>,
    /// The schemas that the operations name. If several groups use a schema, one of them has it.
    pub schemas: Vec<(&'static str, Value)>,
}

impl Group {
    /// The routes to the group's handlers.
    pub(crate) fn routes(self) -> Router<HttpState> {
        let add = |router: Router<HttpState>, operation: Operation| {
            router.route(&operation.path, operation.handler)
        };
        self.operations.into_iter().fold(Router::new(), add)
    }
}

/// One method of one path: the handler and its description.
#[expect(clippy::struct_excessive_bools, reason = "each flag is independent of the others")]
pub(crate) struct Operation {
    id: &'static str,
    method: &'static str,
    /// The path in the router's syntax: `/v1/templates/{template}`. In the document the parameter is `templateId`.
    path: String,
    summary: &'static str,
    about: &'static str,
    takes: Option<&'static str>,
    /// The content type of a request body that is not JSON.
    takes_bytes: Option<&'static str>,
    /// Whether requests may come without their body.
    is_body_optional: bool,
    gives: ResponseKind,
    parameters: Vec<Parameter>,
    /// Whether the operation returns server-sent events to clients that accept them.
    events: bool,
    /// The schema of error responses, if it is not the common one.
    refuses_as: Option<&'static str>,
    /// Whether the operation needs no key.
    open: bool,
    /// Whether requests count against a rate limit.
    rated: bool,
    /// Whether the resource has an `ETag`.
    tagged: bool,
    /// The error statuses beside those of every operation of this kind.
    refusals: Vec<u16>,
    handler: MethodRouter<HttpState>,
}

/// The response of a successful operation.
#[derive(Clone, Copy)]
enum ResponseKind {
    /// Status 204 without a body.
    Nothing,
    /// Status 200 and JSON of this schema.
    One(&'static str),
    /// Status 202 and JSON of this schema.
    Accepted(&'static str),
    /// Status 200 and a JSON array of this schema.
    Many(&'static str),
    /// Status 200 and text of this content type.
    Text(&'static str),
}

impl Operation {
    /// An operation with the method GET.
    pub(crate) fn get<H: Handler<T, HttpState>, T: 'static>(
        id: &'static str,
        path: impl Into<String>,
        handler: H,
    ) -> Self {
        Self::new(id, "get", path.into(), get(handler))
    }

    /// An operation with the method POST.
    pub(crate) fn post<H: Handler<T, HttpState>, T: 'static>(
        id: &'static str,
        path: impl Into<String>,
        handler: H,
    ) -> Self {
        Self::new(id, "post", path.into(), post(handler))
    }

    /// An operation with the method PATCH.
    pub(crate) fn patch<H: Handler<T, HttpState>, T: 'static>(
        id: &'static str,
        path: impl Into<String>,
        handler: H,
    ) -> Self {
        Self::new(id, "patch", path.into(), patch(handler))
    }

    /// An operation with the method DELETE.
    pub(crate) fn delete<H: Handler<T, HttpState>, T: 'static>(
        id: &'static str,
        path: impl Into<String>,
        handler: H,
    ) -> Self {
        Self::new(id, "delete", path.into(), delete(handler))
    }

    /// One method of a fast route, below the path `mount`.
    pub(crate) fn fast(id: &'static str, method: &Method, route: &FastRoute, mount: &str) -> Self {
        let name = if *method == Method::GET { "get" } else { "post" };
        Self::new(id, name, route.pattern(mount).to_owned(), route.on(method))
    }

    /// One method of a path that no router has, because all of its requests are forwarded.
    pub(crate) fn forwarded(id: &'static str, method: &Method, path: &str) -> Self {
        let name = match *method {
            Method::POST => "post",
            Method::PUT => "put",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "get",
        };
        Self::new(id, name, path.to_owned(), MethodRouter::new())
    }

    fn new(id: &'static str, method: &'static str, path: String, handler: MethodRouter<HttpState>) -> Self {
        Self {
            id,
            method,
            path,
            summary: "",
            about: "",
            takes: None,
            takes_bytes: None,
            is_body_optional: false,
            gives: ResponseKind::Nothing,
            parameters: Vec::new(),
            events: false,
            refuses_as: None,
            open: false,
            rated: false,
            tagged: false,
            refusals: Vec::new(),
            handler,
        }
    }

    /// Sets the summary: a few words for lists of operations.
    pub(crate) fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// Sets the description of the operation, which stands below its summary.
    pub(crate) fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// Sets the schema of the JSON body of requests.
    pub(crate) fn takes(self, schema: &'static str) -> Self {
        Self { takes: Some(schema), ..self }
    }

    /// Sets the content type of a request body that is not JSON.
    pub(crate) fn takes_bytes(self, content_type: &'static str) -> Self {
        Self { takes_bytes: Some(content_type), ..self }
    }

    /// Sets the content type of a request body that is not JSON and may be absent.
    pub(crate) fn may_take_bytes(self, content_type: &'static str) -> Self {
        Self { takes_bytes: Some(content_type), is_body_optional: true, ..self }
    }

    /// Sets the response to 200 and JSON of this schema. The default is 204.
    pub(crate) fn gives(self, schema: &'static str) -> Self {
        Self { gives: ResponseKind::One(schema), ..self }
    }

    /// Sets the response to 202 and JSON of this schema.
    pub(crate) fn accepts_as(self, schema: &'static str) -> Self {
        Self { gives: ResponseKind::Accepted(schema), ..self }
    }

    /// Sets the response to 200 and a JSON array of this schema.
    pub(crate) fn gives_many(self, schema: &'static str) -> Self {
        Self { gives: ResponseKind::Many(schema), ..self }
    }

    /// Sets the response to 200 and text of this content type.
    pub(crate) fn gives_text(self, content_type: &'static str) -> Self {
        Self { gives: ResponseKind::Text(content_type), ..self }
    }

    /// Sets the response to a list in pages ([`page::Page`]).
    pub(crate) fn lists(self, schema: &'static str) -> Self {
        self.gives_many(schema).with(parameter::PAGE)
    }

    /// Adds parameters to those of the operation's path.
    pub(crate) fn with(mut self, parameters: &[Parameter]) -> Self {
        self.parameters.extend_from_slice(parameters);
        self
    }

    /// Declares that clients may ask for server-sent events instead.
    pub(crate) fn or_events(self) -> Self {
        Self { events: true, ..self }
    }

    /// Sets the schema of error responses, for clients that expect another than the common one.
    pub(crate) fn refuses_as(self, schema: &'static str) -> Self {
        Self { refuses_as: Some(schema), ..self }
    }

    /// Declares that the operation needs no key.
    pub(crate) fn open(self) -> Self {
        Self { open: true, ..self }
    }

    /// Declares that requests count against a rate limit.
    pub(crate) fn rated(self) -> Self {
        Self { rated: true, ..self }
    }

    /// Declares that the resource has an `ETag`.
    pub(crate) fn tagged(self) -> Self {
        Self { tagged: true, ..self }
    }

    /// Adds an error status.
    pub(crate) fn refuses(mut self, status: u16) -> Self {
        self.refusals.push(status);
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_operation_says_what_it_does_and_has_an_id_of_its_own() {
        let mut ids = BTreeSet::new();
        for group in crate::management::documented_groups() {
            assert!(!group.about.is_empty(), "{}", group.name);
            for operation in &group.operations {
                assert!(!operation.summary.is_empty(), "{}", operation.id);
                assert!(ids.insert(operation.id), "{} is used twice", operation.id);
            }
        }
    }
}
