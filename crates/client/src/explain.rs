//! Why a job waits (`/v2/{endpoint}/explain`).

use longshore_model::{JobId, JobState};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

/// Why a job or an endpoint waits.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The state of the job; `None` without a job, and if its queue does not answer.
    #[serde(default, deserialize_with = "state")]
    pub state: Option<JobState>,
    /// How long the job waits, in ms; without a job, the oldest one that is not of low priority.
    #[serde(default)]
    pub waiting_ms: Option<u64>,
    /// The job's position, 1 is next.
    #[serde(default)]
    pub position: Option<u64>,
    /// The number of queued jobs of the endpoint.
    #[serde(default)]
    pub queued: Option<u64>,
    /// When the job starts, probably; `None` if too little was measured or a cause is blocking.
    #[serde(default)]
    pub estimate: Option<WaitEstimate>,
    /// The most important cause.
    pub cause: WaitCause,
    /// The other causes that hold.
    #[serde(default)]
    pub also: Vec<WaitCause>,
}

/// The time until a job starts, in ms.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitEstimate {
    /// The job hardly starts earlier.
    pub min_ms: u64,
    /// The job hardly starts later.
    pub max_ms: u64,
}

/// One reason for which a job waits.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitCause {
    /// The reason as a word, such as `all_busy`.
    pub code: String,
    /// Whether no job starts before the cause is removed.
    pub blocking: bool,
    /// The reason in a few words.
    pub title: String,
    /// The reason in sentences.
    pub text: String,
    /// The numbers and names of the text.
    #[serde(default)]
    pub details: Value,
    /// The last lines of a worker's log, if they show the reason.
    #[serde(default)]
    pub log_tail: Vec<String>,
    /// What the reader can do.
    #[serde(default)]
    pub actions: Vec<WaitAction>,
}

/// Something that a person can do about a cause.
#[derive(Clone, Debug, Deserialize)]
pub struct WaitAction {
    /// The action as a word, such as `resume`.
    #[serde(rename = "do")]
    pub name: String,
    /// The action in a few words.
    pub title: String,
}

impl Client {
    /// Returns why a job waits, or, without a job, why the jobs of the endpoint wait.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn explain(&self, endpoint: &str, job: Option<JobId>) -> Result<Explanation, ClientError> {
        self.transport.json(RequestBuilder::get(&path(endpoint, job))).await
    }

    /// As [`Client::explain`], as JSON text.
    ///
    /// # Errors
    ///
    /// As [`Client::explain`].
    pub async fn explain_text(
        &self,
        endpoint: &str,
        job: Option<JobId>,
    ) -> Result<Box<RawValue>, ClientError> {
        self.transport.json(RequestBuilder::get(&path(endpoint, job))).await
    }
}

fn path(endpoint: &str, job: Option<JobId>) -> String {
    let job = job.map_or_else(String::new, |job| format!("/{job}"));
    format!("/v2/{}/explain{job}", segment(endpoint))
}

fn state<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<JobState>, D::Error> {
    let name = Option::<String>::deserialize(from)?;
    Ok(name.and_then(|name| JobState::parse(&name)))
}
