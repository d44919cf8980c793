//! The one list of the routes that every job passes. The fast path's table and the router's routes are made from it.

use axum::routing::{MethodFilter, MethodRouter};
use http::Method;

use crate::wire::route_path::{RouteHandler, routed};
use crate::{HttpState, jobs, workers};

/// A route that every job passes.
pub(crate) struct FastRoute {
    pub(crate) methods: &'static [Method],
    /// As axum's router has them, one for each mount.
    pub(crate) patterns: &'static [&'static str],
    pub(super) handler: RouteHandler,
}

pub(crate) static RUN: FastRoute = FastRoute {
    methods: &[Method::POST],
    patterns: &["/v2/{endpoint}/run", "/sdk/v2/{endpoint}/run"],
    handler: jobs::run,
};

pub(crate) static RUNSYNC: FastRoute = FastRoute {
    methods: &[Method::POST],
    patterns: &["/v2/{endpoint}/runsync", "/sdk/v2/{endpoint}/runsync"],
    handler: jobs::runsync,
};

pub(crate) static STATUS: FastRoute = FastRoute {
    methods: &[Method::GET, Method::POST],
    patterns: &["/v2/{endpoint}/status/{job}", "/sdk/v2/{endpoint}/status/{job}"],
    handler: jobs::status,
};

pub(crate) static TAKE: FastRoute = FastRoute {
    methods: &[Method::GET],
    patterns: &["/v2/{endpoint}/job-take/{worker}"],
    handler: workers::take,
};

pub(crate) static TAKE_BATCH: FastRoute = FastRoute {
    methods: &[Method::GET],
    patterns: &["/v2/{endpoint}/job-take-batch/{worker}"],
    handler: workers::take_batch,
};

pub(crate) static DONE: FastRoute = FastRoute {
    methods: &[Method::POST],
    patterns: &["/v2/{endpoint}/job-done/{worker}/{job}"],
    handler: workers::done,
};

pub(crate) static PING: FastRoute = FastRoute {
    methods: &[Method::GET],
    patterns: &["/v2/{endpoint}/ping/{worker}"],
    handler: workers::ping,
};

/// All of them.
pub(crate) static ROUTES: [&FastRoute; 7] = [&RUN, &RUNSYNC, &STATUS, &TAKE, &TAKE_BATCH, &DONE, &PING];

impl FastRoute {
    /// The pattern of the mount that begins like this; the first one where none does.
    pub(crate) fn pattern(&self, mount: &str) -> &'static str {
        let is_there = |pattern: &&&'static str| pattern.starts_with(mount);
        self.patterns.iter().find(is_there).or(self.patterns.first()).copied().unwrap_or_default()
    }

    /// One of its methods, as axum's router takes it.
    pub(crate) fn on(&self, method: &Method) -> MethodRouter<HttpState> {
        let filter = MethodFilter::try_from(method.clone());
        filter.map_or_else(
            |_| MethodRouter::new(),
            |filter| MethodRouter::new().on(filter, routed(self.handler)),
        )
    }

    /// All of its methods, as axum's router takes them.
    pub(crate) fn on_all(&self) -> MethodRouter<HttpState> {
        self.methods.iter().map(|method| self.on(method)).fold(MethodRouter::new(), MethodRouter::merge)
    }
}
