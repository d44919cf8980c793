//! The routes of the job interface that every job passes.

use http::Method;

use crate::fast_route::FastRoute;

pub(crate) static RUN: FastRoute = FastRoute {
    methods: &[Method::POST],
    patterns: &["/v2/{endpoint}/run", "/sdk/v2/{endpoint}/run"],
    handler: super::run,
};

pub(crate) static RUNSYNC: FastRoute = FastRoute {
    methods: &[Method::POST],
    patterns: &["/v2/{endpoint}/runsync", "/sdk/v2/{endpoint}/runsync"],
    handler: super::runsync,
};

pub(crate) static STATUS: FastRoute = FastRoute {
    methods: &[Method::GET, Method::POST],
    patterns: &["/v2/{endpoint}/status/{job}", "/sdk/v2/{endpoint}/status/{job}"],
    handler: super::status,
};
