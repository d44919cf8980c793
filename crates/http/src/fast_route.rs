//! A route that every job passes. The router and the fast path are both made from it.

use axum::extract::{Request, State};
use axum::routing::{MethodFilter, MethodRouter};
use http::Method;

use crate::HttpState;
use crate::wire::BoxResponse;
use crate::wire::route_path::{RoutePath, RoutedPath};

/// Handles a request whose path has these parameters. Work that needs no waiting is done before the future is returned.
pub(crate) type RouteHandler = fn(&HttpState, RoutePath<'_>, Request) -> BoxResponse;

/// The handler as axum's router takes it.
pub(crate) fn routed(
    handler: RouteHandler,
) -> impl Fn(State<HttpState>, RoutedPath, Request) -> BoxResponse + Clone {
    move |State(state), path, request| handler(&state, path.as_path(), request)
}

/// A route that every job passes.
pub(crate) struct FastRoute {
    /// The methods that the route serves.
    pub(crate) methods: &'static [Method],
    /// The patterns of the route's paths as axum's router takes them, one for each mount.
    pub(crate) patterns: &'static [&'static str],
    pub(crate) handler: RouteHandler,
}

impl FastRoute {
    /// The pattern of the mount that starts with `mount`; the first pattern if there is no such mount.
    pub(crate) fn pattern(&self, mount: &str) -> &'static str {
        let is_there = |pattern: &&&'static str| pattern.starts_with(mount);
        self.patterns.iter().find(is_there).or(self.patterns.first()).copied().unwrap_or_default()
    }

    /// The route with one of its methods, as axum's router takes it.
    pub(crate) fn on(&self, method: &Method) -> MethodRouter<HttpState> {
        let filter = MethodFilter::try_from(method.clone());
        filter.map_or_else(
            |_| MethodRouter::new(),
            |filter| MethodRouter::new().on(filter, routed(self.handler)),
        )
    }

    /// The route with all of its methods, as axum's router takes it.
    pub(crate) fn on_all(&self) -> MethodRouter<HttpState> {
        self.methods.iter().map(|method| self.on(method)).fold(MethodRouter::new(), MethodRouter::merge)
    }
}
