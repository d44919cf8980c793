//! One attempt: build the body, send it, see what the receiver says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, Request, StatusCode, Uri};
use tokio::sync::Semaphore;

use super::body::{self, Message};
use super::lanes::{Crowded, Lanes, Slot};
use super::{HookDue, HookOwner, Post};
use crate::AskError;

/// Bodies being built at a time: each may need the whole input and output of a job in memory.
const BUILDS_MAX: usize = 4;

/// How an attempt went.
pub(super) enum Verdict {
    /// The receiver said 200.
    Accepted(Slot),
    /// It said something else, or nothing.
    Failed(Slot),
    /// It can never be made; the text says why.
    Impossible(String),
    /// Nobody is owed this call any more.
    NotOwed,
    /// The job could not be read now.
    Unreadable(String),
    /// There is no room now; the body was dropped.
    Crowded(Arc<str>, Crowded),
}

/// Makes attempts.
#[derive(Clone)]
pub(super) struct Caller {
    post: Arc<dyn Post>,
    timeout: Duration,
    builds: Arc<Semaphore>,
    lanes: Lanes,
}

impl Caller {
    pub fn new(timeout: Duration, lanes: Lanes, post: Arc<dyn Post>) -> Self {
        Self { post, timeout, builds: Arc::new(Semaphore::new(BUILDS_MAX)), lanes }
    }

    /// Makes one attempt.
    pub async fn attempt<H: HookOwner>(&self, due: &HookDue<H>) -> Verdict {
        let (message, slot) = match self.prepare(due).await {
            Ok(prepared) => prepared,
            Err(verdict) => return verdict,
        };
        let place = place_of(&message.url);
        let started = Instant::now();
        let answer = tokio::time::timeout(self.timeout, self.send(message)).await;
        let (job, attempt, ms) = (due.job, due.attempts + 1, started.elapsed().as_millis() as u64);
        match answer {
            Ok(Ok(StatusCode::OK)) => {
                tracing::info!(%job, attempt, ms, %place, "webhook accepted");
                Verdict::Accepted(slot)
            }
            Ok(Ok(status)) => {
                tracing::info!(%job, attempt, ms, %place, status = status.as_u16(), "webhook not accepted");
                Verdict::Failed(slot)
            }
            Ok(Err(error)) => {
                tracing::info!(%job, attempt, ms, %place, %error, "webhook not delivered");
                Verdict::Failed(slot)
            }
            Err(_) => {
                tracing::info!(%job, attempt, ms, %place, "webhook not answered in time");
                Verdict::Failed(slot)
            }
        }
    }

    /// Builds the body and finds room for it.
    async fn prepare<H: HookOwner>(&self, due: &HookDue<H>) -> Result<(Message, Slot), Verdict> {
        let Ok(_building) = self.builds.acquire().await else {
            return Err(Verdict::Unreadable("the server is stopping".to_owned()));
        };
        let job = due.handle.status(due.job).await.map_err(unread)?;
        if job.row.owed_end() != Some(due.end) {
            return Err(Verdict::NotOwed);
        }
        let members = due.handle.members(due.job).await.map_err(unread)?;
        let message = body::build(&job, &members).map_err(Verdict::Impossible)?;
        let host: Arc<str> = message.url.host().unwrap_or_default().to_ascii_lowercase().into();
        match self.lanes.enter(&host, message.body.len()) {
            Ok(slot) => Ok((message, slot)),
            Err(crowded) => Err(Verdict::Crowded(host, crowded)),
        }
    }

    async fn send(&self, message: Message) -> Result<StatusCode, String> {
        let call = Request::builder()
            .method(Method::POST)
            .uri(message.url)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("longshore/", env!("CARGO_PKG_VERSION")))
            .body(Bytes::from(message.body))
            .map_err(|error| error.to_string())?;
        self.post.post(call).await
    }
}

fn unread(error: AskError) -> Verdict {
    match error {
        // The job or its endpoint was deleted: nobody waits for this call any more.
        AskError::Refused(_) | AskError::Gone => Verdict::NotOwed,
        AskError::Unavailable(text) => Verdict::Unreadable(text),
    }
}

/// Where a call goes, for the log: paths and queries hold secrets often enough.
fn place_of(url: &Uri) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme_str().unwrap_or_default(), url.host().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_names_scheme_host_and_port_alone() {
        let url = "https://user:hush@h.example:8443/hush?token=hush".parse().unwrap();
        assert_eq!(place_of(&url), "https://h.example:8443");
        assert_eq!(place_of(&"http://[::1]/a".parse().unwrap()), "http://[::1]");
    }
}
