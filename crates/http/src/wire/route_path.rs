//! The path parameters of jobs and workers.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

/// The parameters of a path. A parameter is empty if the path does not have it or it is not UTF-8. The handler refuses
/// such a path after it has checked the key, not before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoutePath<'a> {
    pub endpoint: &'a str,
    pub worker: &'a str,
    pub job: &'a str,
}

/// The parameters of a path, extracted by axum's router.
#[derive(Debug, Default)]
pub(crate) struct RoutedPath {
    endpoint: String,
    worker: String,
    job: String,
}

impl RoutedPath {
    pub(crate) fn as_path(&self) -> RoutePath<'_> {
        RoutePath { endpoint: &self.endpoint, worker: &self.worker, job: &self.job }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RoutedPath {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let mut path = Self::default();
        if let Ok(params) = RawPathParams::from_request_parts(parts, state).await {
            for (name, value) in &params {
                match name {
                    "endpoint" => value.clone_into(&mut path.endpoint),
                    "worker" => value.clone_into(&mut path.worker),
                    "job" => value.clone_into(&mut path.job),
                    _ => {}
                }
            }
        }
        Ok(path)
    }
}
