//! Operations: what the API does, each with its handler and its description in one place. The router and the API's
//! document are both made from them, so that neither knows what the other does not.

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

/// Operations on one kind of thing.
pub(crate) struct Group {
    /// What readers of the document find it under.
    pub name: &'static str,
    /// What it is about, in a sentence or two.
    pub about: &'static str,
    /// The operations.
    pub operations: Vec<Operation>,
    /// The schemas that the operations name. A name that several groups use is given by one of them.
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

/// One method of one path.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says one thing that has nothing to do with the others"
)]
pub(crate) struct Operation {
    id: &'static str,
    method: &'static str,
    /// As the router has it: `/v1/templates/{template}`. In the document the parameter is called `templateId`.
    path: String,
    summary: &'static str,
    about: &'static str,
    takes: Option<&'static str>,
    /// It takes bytes of this content type instead.
    takes_bytes: Option<&'static str>,
    gives: ResponseKind,
    parameters: Vec<Parameter>,
    /// It answers server-sent events, too, to those who ask for them.
    events: bool,
    /// Its refusals have this schema instead of the one shape.
    refuses_as: Option<&'static str>,
    /// It needs no key.
    open: bool,
    /// It counts against a rate.
    rated: bool,
    /// Its resource has an `ETag`.
    tagged: bool,
    /// Refusals beside those that every operation of its kind has.
    refusals: Vec<u16>,
    handler: MethodRouter<HttpState>,
}

/// What an operation answers when it is done.
#[derive(Clone, Copy)]
enum ResponseKind {
    /// 204.
    Nothing,
    /// 200 and JSON of this schema.
    One(&'static str),
    /// 200 and a JSON array of this schema.
    Many(&'static str),
    /// 200 and a text of this content type.
    Text(&'static str),
}

impl Operation {
    /// `GET path`.
    pub(crate) fn get<H: Handler<T, HttpState>, T: 'static>(
        id: &'static str,
        path: impl Into<String>,
        handler: H,
    ) -> Self {
        Self::new(id, "get", path.into(), get(handler))
    }

    /// `POST path`.
    pub(crate) fn post<H: Handler<T, HttpState>, T: 'static>(
        id: &'static str,
        path: impl Into<String>,
        handler: H,
    ) -> Self {
        Self::new(id, "post", path.into(), post(handler))
    }

    /// `PATCH path`.
    pub(crate) fn patch<H: Handler<T, HttpState>, T: 'static>(
        id: &'static str,
        path: impl Into<String>,
        handler: H,
    ) -> Self {
        Self::new(id, "patch", path.into(), patch(handler))
    }

    /// `DELETE path`.
    pub(crate) fn delete<H: Handler<T, HttpState>, T: 'static>(
        id: &'static str,
        path: impl Into<String>,
        handler: H,
    ) -> Self {
        Self::new(id, "delete", path.into(), delete(handler))
    }

    /// One method of a route that every job passes, on the mount that begins like this.
    pub(crate) fn hot(id: &'static str, method: &Method, route: &FastRoute, mount: &str) -> Self {
        let name = if *method == Method::GET { "get" } else { "post" };
        Self::new(id, name, route.pattern(mount).to_owned(), route.on(method))
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

    /// What it does: a few words for lists of operations.
    pub(crate) fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// What else there is to know.
    pub(crate) fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// It takes JSON of this schema.
    pub(crate) fn takes(self, schema: &'static str) -> Self {
        Self { takes: Some(schema), ..self }
    }

    /// It takes bytes of this content type.
    pub(crate) fn takes_bytes(self, content_type: &'static str) -> Self {
        Self { takes_bytes: Some(content_type), ..self }
    }

    /// It answers 200 and JSON of this schema. Without any of these three it answers 204.
    pub(crate) fn gives(self, schema: &'static str) -> Self {
        Self { gives: ResponseKind::One(schema), ..self }
    }

    /// It answers 200 and a JSON array of this schema.
    pub(crate) fn gives_many(self, schema: &'static str) -> Self {
        Self { gives: ResponseKind::Many(schema), ..self }
    }

    /// It answers 200 and a text of this content type.
    pub(crate) fn gives_text(self, content_type: &'static str) -> Self {
        Self { gives: ResponseKind::Text(content_type), ..self }
    }

    /// It answers a list in pages ([`page::Page`]).
    pub(crate) fn lists(self, schema: &'static str) -> Self {
        self.gives_many(schema).with(parameter::PAGE)
    }

    /// It has these parameters, too.
    pub(crate) fn with(mut self, parameters: &[Parameter]) -> Self {
        self.parameters.extend_from_slice(parameters);
        self
    }

    /// It answers server-sent events, too, to those who ask for them.
    pub(crate) fn or_events(self) -> Self {
        Self { events: true, ..self }
    }

    /// Its refusals have this schema: its clients read no other.
    pub(crate) fn refuses_as(self, schema: &'static str) -> Self {
        Self { refuses_as: Some(schema), ..self }
    }

    /// It needs no key.
    pub(crate) fn open(self) -> Self {
        Self { open: true, ..self }
    }

    /// It counts against a rate.
    pub(crate) fn rated(self) -> Self {
        Self { rated: true, ..self }
    }

    /// It shows or changes a resource that has an `ETag`.
    pub(crate) fn tagged(self) -> Self {
        Self { tagged: true, ..self }
    }

    /// It can be refused with this status, too.
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
        for group in crate::management::all_groups() {
            assert!(!group.about.is_empty(), "{}", group.name);
            for operation in &group.operations {
                assert!(!operation.summary.is_empty(), "{}", operation.id);
                assert!(ids.insert(operation.id), "{} is used twice", operation.id);
            }
        }
    }
}
