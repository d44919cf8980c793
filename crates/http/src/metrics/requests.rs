//! Counts requests by route, method and status, and measures them by route.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use longshore_engine::{Histogram, HistogramSnapshot};

/// Bounds of the time until a response's head, in µs: 100 µs to 5 min, which is as long as a request may wait.
const RESPONSE_US_BOUNDS: [u64; 15] = [
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    100_000,
    250_000,
    1_000_000,
    5_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
];

/// The requests by route. Routes are patterns (`/v2/{endpoint}/run`), which bounds their number.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts {
    routes: RwLock<BTreeMap<String, Route>>,
}

/// The requests of one route.
#[derive(Debug)]
struct Route {
    /// The number of responses by method and status.
    responses: BTreeMap<(&'static str, u16), AtomicU64>,
    /// The time from a request's head to the head of its response, in µs.
    response_us: Histogram,
}

impl Default for Route {
    fn default() -> Self {
        Self { responses: BTreeMap::new(), response_us: Histogram::new(&RESPONSE_US_BOUNDS) }
    }
}

/// One counter with its labels.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestCount {
    pub route: String,
    pub method: &'static str,
    pub status: u16,
    pub count: u64,
}

impl RequestCounts {
    /// Counts a request whose response is known, `took` after its head arrived.
    pub(crate) fn count(&self, route: &str, method: &Method, status: StatusCode, took: Duration) {
        let answer = (method_name(method), status.as_u16());
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        let known = routes.get(route).and_then(|route| Some((route, route.responses.get(&answer)?)));
        if let Some((route, number)) = known {
            number.fetch_add(1, Ordering::Relaxed);
            route.response_us.record(us);
            return;
        }
        drop(routes);
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        let route = routes.entry(route.to_owned()).or_default();
        route.responses.entry(answer).or_default().fetch_add(1, Ordering::Relaxed);
        route.response_us.record(us);
    }

    /// The times until responses at this moment, in µs, by route.
    pub(super) fn times(&self) -> Vec<(String, HistogramSnapshot)> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        routes.iter().map(|(name, route)| (name.clone(), route.response_us.snapshot())).collect()
    }

    /// The counters at this moment.
    pub(super) fn snapshot(&self) -> Vec<RequestCount> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        let counts = routes.iter().flat_map(|(name, route)| {
            route.responses.iter().map(|((method, status), count)| RequestCount {
                route: name.clone(),
                method,
                status: *status,
                count: count.load(Ordering::Relaxed),
            })
        });
        counts.collect()
    }
}

/// The label of a method. All methods that no route takes share `other`: a client may send any word as a method, and each
/// label is a counter.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_method_and_status() {
        let counts = RequestCounts::default();
        for status in [StatusCode::OK, StatusCode::OK, StatusCode::NOT_FOUND] {
            counts.count("/a", &Method::GET, status, Duration::from_micros(200));
        }
        counts.count("/a", &Method::POST, StatusCode::OK, Duration::MAX);
        let seen: Vec<_> =
            counts.snapshot().into_iter().map(|one| (one.route, one.method, one.status, one.count)).collect();
        let route = || "/a".to_owned();
        assert_eq!(seen, [(route(), "GET", 200, 2), (route(), "GET", 404, 1), (route(), "POST", 200, 1)]);
        let (name, times) = counts.times().remove(0);
        assert_eq!((name.as_str(), &times.cumulative[..2]), ("/a", &[0, 3][..]));
        assert_eq!(times.cumulative.last(), Some(&4));
    }
}
