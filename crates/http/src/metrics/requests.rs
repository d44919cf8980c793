//! Counts requests by route, method and status.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::{Method, StatusCode};

/// The number of requests by route, method and status. Routes are patterns (`/v2/{endpoint}/run`), which bounds the number
/// of counters.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts {
    routes: RwLock<BTreeMap<String, Answers>>,
}

/// The counters of one route, by method and status.
type Answers = BTreeMap<(&'static str, u16), Arc<AtomicU64>>;

/// One counter with its labels.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestCount {
    pub route: String,
    pub method: &'static str,
    pub status: u16,
    pub count: u64,
}

impl RequestCounts {
    /// Counts a request whose response is known.
    pub(crate) fn count(&self, route: &str, method: &Method, status: StatusCode) {
        self.number(route, method, status).fetch_add(1, Ordering::Relaxed);
    }

    fn number(&self, route: &str, method: &Method, status: StatusCode) -> Arc<AtomicU64> {
        let (method, status) = (method_name(method), status.as_u16());
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = routes.get(route).and_then(|answers| answers.get(&(method, status))) {
            return Arc::clone(number);
        }
        drop(routes);
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        let answers = routes.entry(route.to_owned()).or_default();
        Arc::clone(answers.entry((method, status)).or_default())
    }

    /// The counters at this moment.
    pub(super) fn snapshot(&self) -> Vec<RequestCount> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        let counts = routes.iter().flat_map(|(route, answers)| {
            answers.iter().map(|((method, status), count)| RequestCount {
                route: route.clone(),
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
            counts.count("/a", &Method::GET, status);
        }
        counts.count("/a", &Method::POST, StatusCode::OK);
        let seen: Vec<_> =
            counts.snapshot().into_iter().map(|one| (one.route, one.method, one.status, one.count)).collect();
        let route = || "/a".to_owned();
        assert_eq!(seen, [(route(), "GET", 200, 2), (route(), "GET", 404, 1), (route(), "POST", 200, 1)]);
    }
}
