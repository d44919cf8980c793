//! Finds the route of a method and a path.

use std::borrow::Cow;
use std::sync::LazyLock;

use http::Method;

use super::routes::ROUTES;
use crate::fast_route::FastRoute;
use crate::wire::route_path::RoutePath;

/// A matched route, and the parameters of its path; empty if the route has no such parameter.
pub(super) struct RouteMatch<'a> {
    pub route: &'static FastRoute,
    /// The pattern that matched.
    pub pattern: &'static str,
    endpoint: Cow<'a, str>,
    worker: &'a str,
    job: &'a str,
}

impl RouteMatch<'_> {
    pub fn path(&self) -> RoutePath<'_> {
        RoutePath { endpoint: &self.endpoint, worker: self.worker, job: self.job }
    }
}

/// A route on one of its mounts, parsed for comparison.
struct MountedRoute {
    route: &'static FastRoute,
    pattern: &'static str,
    is_sdk: bool,
    /// The segment after the endpoint's name.
    operation: &'static str,
    has_worker: bool,
    has_job: bool,
}

static TABLE: LazyLock<Vec<MountedRoute>> = LazyLock::new(|| {
    let mounted = |route: &'static FastRoute| {
        route.patterns.iter().filter_map(move |pattern| MountedRoute::new(route, pattern))
    };
    ROUTES.into_iter().flat_map(mounted).collect()
});

impl MountedRoute {
    /// `None` for a pattern without an operation.
    fn new(route: &'static FastRoute, pattern: &'static str) -> Option<Self> {
        let (is_sdk, rest) = mount(pattern)?;
        let mut segments = rest.split('/').skip(1);
        let operation = segments.next()?;
        let has = |parameter| segments.clone().any(|segment| segment == parameter);
        let (has_worker, has_job) = (has("{worker}"), has("{job}"));
        Some(Self { route, pattern, is_sdk, operation, has_worker, has_job })
    }
}

/// Whether a path is on the mount of the client libraries, and the rest of the path after the mount.
fn mount(path: &str) -> Option<(bool, &str)> {
    let specified = path.strip_prefix("/v2/").map(|rest| (false, rest));
    specified.or_else(|| path.strip_prefix("/sdk/v2/").map(|rest| (true, rest)))
}

/// The route of a request; `None` for every request that the router must match.
pub(super) fn find<'a>(method: &Method, path: &'a str) -> Option<RouteMatch<'a>> {
    let (is_sdk, rest) = mount(path)?;
    let mut segments = rest.split('/');
    let (name, operation) = (segments.next()?, segments.next()?);
    let (first, second) = (segments.next(), segments.next());
    if [Some(name), first, second].contains(&Some("")) || segments.next().is_some() {
        return None;
    }
    let found = TABLE.iter().find(|mounted| {
        mounted.operation == operation
            && mounted.is_sdk == is_sdk
            && (mounted.has_worker || mounted.has_job) == first.is_some()
            && (mounted.has_worker && mounted.has_job) == second.is_some()
            && mounted.route.methods.contains(method)
    })?;
    let endpoint = unescaped(name, path)?;
    let (worker, job) = if found.has_worker { (first, second) } else { (None, first) };
    let (worker, job) = (worker.unwrap_or_default(), job.unwrap_or_default());
    Some(RouteMatch { route: found.route, pattern: found.pattern, endpoint, worker, job })
}

/// An endpoint's name with its slashes unescaped. `None` if anything else in the path is escaped.
fn unescaped<'a>(name: &'a str, path: &str) -> Option<Cow<'a, str>> {
    if !path.contains('%') {
        return Some(Cow::Borrowed(name));
    }
    let escapes = |text: &str| text.matches('%').count();
    let plain = name.replace("%2F", "/").replace("%2f", "/");
    (escapes(name) == escapes(path) && escapes(&plain) == 0).then_some(Cow::Owned(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pattern, endpoint, worker and job that are found.
    fn found(method: &Method, path: &str) -> Option<(&'static str, String, String, String)> {
        let found = find(method, path)?;
        let RoutePath { endpoint, worker, job } = found.path();
        Some((found.pattern, endpoint.to_owned(), worker.to_owned(), job.to_owned()))
    }

    #[test]
    fn the_routes_of_every_job_are_found() {
        for (method, path, pattern, endpoint, worker, job) in [
            (Method::POST, "/v2/e/run", "/v2/{endpoint}/run", "e", "", ""),
            (Method::GET, "/sdk/v2/e/status/j", "/sdk/v2/{endpoint}/status/{job}", "e", "", "j"),
            (Method::GET, "/v2/e/job-take/w", "/v2/{endpoint}/job-take/{worker}", "e", "w", ""),
            (
                Method::POST,
                "/v2/e/job-done/w&x=1/j",
                "/v2/{endpoint}/job-done/{worker}/{job}",
                "e",
                "w&x=1",
                "j",
            ),
            (Method::POST, "/v2/o%2Fm%2fn/runsync", "/v2/{endpoint}/runsync", "o/m/n", "", ""),
        ] {
            let expected = (pattern, endpoint.to_owned(), worker.to_owned(), job.to_owned());
            assert_eq!(found(&method, path), Some(expected), "{path}");
        }
    }

    #[test]
    fn every_route_of_the_list_is_found_by_its_patterns() {
        for route in ROUTES {
            for pattern in route.patterns {
                let path = pattern.replace(['{', '}'], "");
                for method in route.methods {
                    let (found, endpoint, ..) = found(method, &path).unwrap();
                    assert_eq!((found, &*endpoint), (*pattern, "endpoint"));
                }
            }
        }
    }

    #[test]
    fn every_other_spelling_is_left_to_the_router() {
        for path in [
            "/v2/e",
            "/v2//run",
            "/v2/e/run/",
            "/v2/e/run/x",
            "/v2/e%31/run",
            "/v2/e%2F%31/run",
            "/v2/e%2/run",
            "/v2/e%2F/job-done/w%2F/j",
            "/v2/e%2Fm",
            "/v1/e/run",
            "/sdk/v2/e/job-done/w/j",
            "/v2/e/job-done/w/j/x",
            "/v2/e/job-done/w",
            "/v2/e/status/",
            "/v2/e/status",
            "/x/v2/e/run",
        ] {
            assert_eq!(found(&Method::POST, path), None, "{path}");
        }
        for (method, path) in [(&Method::GET, "/v2/e/run"), (&Method::HEAD, "/v2/e/job-take/w")] {
            assert_eq!(found(method, path), None, "{path}");
        }
    }
}
