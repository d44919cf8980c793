//! The routes of the worker protocol that every job passes.

use http::Method;

use crate::fast_route::FastRoute;

pub(crate) static TAKE: FastRoute = FastRoute {
    methods: &[Method::GET],
    patterns: &["/v2/{endpoint}/job-take/{worker}"],
    handler: super::take,
};

pub(crate) static TAKE_BATCH: FastRoute = FastRoute {
    methods: &[Method::GET],
    patterns: &["/v2/{endpoint}/job-take-batch/{worker}"],
    handler: super::take_batch,
};

pub(crate) static DONE: FastRoute = FastRoute {
    methods: &[Method::POST],
    patterns: &["/v2/{endpoint}/job-done/{worker}/{job}"],
    handler: super::done,
};

pub(crate) static PING: FastRoute =
    FastRoute { methods: &[Method::GET], patterns: &["/v2/{endpoint}/ping/{worker}"], handler: super::ping };
