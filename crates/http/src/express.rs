//! The shortest way to the routes that every job takes.
//!
//! axum's router finds any path and puts any layer around it, at a price: of the 64 000 instructions of a submit,
//! 16 000 went into services cloned and boxed inside each other and into path parameters kept as extensions of
//! the request, as much as everything that hyper does. So what comes in for every single job is told by hand here.
//!
//! Only requests that are spelled as the documentation spells them: whatever is not exactly one of these, be it for
//! its method or an escape in its path (other than of a `/` in an endpoint's name), goes to the router, which knows these
//! routes too and has the last word.

use std::borrow::Cow;

use axum::extract::Request;
use http::Method;
use memchr::memchr;

use crate::edge::Answering;
use crate::jobs::JobPath;
use crate::splitting::split_once;
use crate::workers::WorkerPath;
use crate::{HttpState, jobs, workers};

/// A route, on one of its mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    route: Route,
    is_sdk: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Run,
    Runsync,
    Status,
    Take,
    TakeBatch,
    Done,
    Ping,
}

/// A route, and what its path says; empty where that has no such part.
#[derive(Debug, PartialEq, Eq)]
struct Found<'a> {
    line: Line,
    endpoint: Cow<'a, str>,
    worker: &'a str,
    job: &'a str,
}

fn find<'a>(method: &Method, path: &'a str) -> Option<Found<'a>> {
    let has_escapes = memchr(b'%', path.as_bytes()).is_some();
    let sdk_rest = path.strip_prefix("/sdk/v2/");
    let is_sdk = sdk_rest.is_some();
    let mut segments = Segments(Some(sdk_rest.or_else(|| path.strip_prefix("/v2/"))?));
    let endpoint = match (segments.next()?, has_escapes) {
        (name, false) => Cow::Borrowed(name),
        (name, true) => Cow::Owned(unescaped(name, segments.0?)?),
    };
    let operation = segments.next()?;
    let (third, fourth, fifth) = (segments.next(), segments.next(), segments.next());
    if [Some(&*endpoint), third, fourth].contains(&Some("")) || fifth.is_some() {
        return None;
    }
    let (route, worker, job) = match (method.as_str(), operation, third, fourth) {
        ("POST", "run", None, None) => (Route::Run, "", ""),
        ("POST", "runsync", None, None) => (Route::Runsync, "", ""),
        ("GET" | "POST", "status", Some(job), None) => (Route::Status, "", job),
        // Workers have one mount only.
        _ if is_sdk => return None,
        ("GET", "job-take", Some(worker), None) => (Route::Take, worker, ""),
        ("GET", "job-take-batch", Some(worker), None) => (Route::TakeBatch, worker, ""),
        ("POST", "job-done", Some(worker), Some(job)) => (Route::Done, worker, job),
        ("GET", "ping", Some(worker), None) => (Route::Ping, worker, ""),
        _ => return None,
    };
    Some(Found { line: Line { route, is_sdk }, endpoint, worker, job })
}

/// An endpoint's name with its slashes. None where anything else is escaped, in the name or behind it.
fn unescaped(name: &str, rest: &str) -> Option<String> {
    let plain = name.replace("%2F", "/").replace("%2f", "/");
    let has_escapes = |text: &str| memchr(b'%', text.as_bytes()).is_some();
    (!has_escapes(&plain) && !has_escapes(rest)).then_some(plain)
}

/// What is between the slashes.
struct Segments<'a>(Option<&'a str>);

impl<'a> Iterator for Segments<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let whole = self.0?;
        let (segment, rest) = split_once(whole, b'/').unzip();
        self.0 = rest;
        segment.or(Some(whole))
    }
}

impl Found<'_> {
    fn answer(&self, state: &HttpState, request: Request) -> Answering {
        let job_path = JobPath { endpoint: &self.endpoint, job: self.job };
        let worker_path = WorkerPath { endpoint: &self.endpoint, worker: self.worker, job: self.job };
        match self.line.route {
            Route::Run => jobs::run(state.clone(), job_path, request),
            Route::Runsync => jobs::runsync(state.clone(), job_path, request),
            Route::Status => jobs::status(state.clone(), job_path, request),
            Route::Take => workers::answer(workers::take, state, worker_path, request),
            Route::TakeBatch => workers::answer(workers::take_batch, state, worker_path, request),
            Route::Done => workers::answer(workers::done, state, worker_path, request),
            Route::Ping => workers::answer(workers::ping, state, worker_path, request),
        }
    }
}

impl Line {
    /// How many places there are.
    pub(crate) const PLACES: usize = 4 * (Route::Ping as usize + 1);

    /// A number of its own for each line and method, below [`Line::PLACES`].
    pub(crate) fn place(self, method: &Method) -> usize {
        4 * self.route as usize + 2 * usize::from(self.is_sdk) + usize::from(*method == Method::POST)
    }

    /// The route as the router calls it.
    pub(crate) fn pattern(self) -> &'static str {
        match (self.route, self.is_sdk) {
            (Route::Run, false) => "/v2/{endpoint}/run",
            (Route::Run, true) => "/sdk/v2/{endpoint}/run",
            (Route::Runsync, false) => "/v2/{endpoint}/runsync",
            (Route::Runsync, true) => "/sdk/v2/{endpoint}/runsync",
            (Route::Status, false) => "/v2/{endpoint}/status/{job}",
            (Route::Status, true) => "/sdk/v2/{endpoint}/status/{job}",
            (Route::Take, _) => "/v2/{endpoint}/job-take/{worker}",
            (Route::TakeBatch, _) => "/v2/{endpoint}/job-take-batch/{worker}",
            (Route::Done, _) => "/v2/{endpoint}/job-done/{worker}/{job}",
            (Route::Ping, _) => "/v2/{endpoint}/ping/{worker}",
        }
    }
}

/// The answer to a request that is for one of these routes; gives back any other.
///
/// Whatever waits for long keeps nothing of the head, which lies in the connection's read buffer of 8 KiB.
#[expect(
    clippy::result_large_err,
    reason = "what is not for here goes on to the router at once; a box is dearer"
)]
pub(crate) fn answer(state: &HttpState, request: Request) -> Result<(Line, Answering), Request> {
    let uri = request.uri().clone();
    let Some(found) = find(request.method(), uri.path()) else { return Err(request) };
    Ok((found.line, found.answer(state, request)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_for_every_job_is_found() {
        let line = |route, is_sdk| Line { route, is_sdk };
        let run = Found { line: line(Route::Run, false), endpoint: "e".into(), worker: "", job: "" };
        assert_eq!(find(&Method::POST, "/v2/e/run"), Some(run));
        let status = Found { line: line(Route::Status, true), endpoint: "e".into(), worker: "", job: "j" };
        assert_eq!(find(&Method::GET, "/sdk/v2/e/status/j"), Some(status));
        let done = Found { line: line(Route::Done, false), endpoint: "e".into(), worker: "w&x=1", job: "j" };
        assert_eq!(find(&Method::POST, "/v2/e/job-done/w&x=1/j"), Some(done));
        let sync = Found { line: line(Route::Runsync, false), endpoint: "o/m/n".into(), worker: "", job: "" };
        assert_eq!(find(&Method::POST, "/v2/o%2Fm%2fn/runsync"), Some(sync));
    }

    #[test]
    fn every_line_and_method_has_a_place_of_its_own() {
        use Route::{Done, Ping, Run, Runsync, Status, Take, TakeBatch};
        let mut places = std::collections::BTreeSet::new();
        for route in [Run, Runsync, Status, Take, TakeBatch, Done, Ping] {
            for is_sdk in [false, true] {
                let line = Line { route, is_sdk };
                places.extend([Method::GET, Method::POST].map(|method| line.place(&method)));
            }
        }
        assert_eq!(places, (0..Line::PLACES).collect());
    }

    #[test]
    fn whatever_is_spelled_otherwise_is_left_to_the_router() {
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
            "/v2/e/status/",
            "/x/v2/e/run",
        ] {
            assert_eq!(find(&Method::POST, path), None, "{path}");
        }
        for (method, path) in [(&Method::GET, "/v2/e/run"), (&Method::HEAD, "/v2/e/job-take/w")] {
            assert_eq!(find(method, path), None, "{path}");
        }
    }
}
