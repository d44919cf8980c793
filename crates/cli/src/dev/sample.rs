//! Runs `test_input.json` as a job and prints the result.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use longshore_client::{Client, Explanation, HealthWorkers, Job};
use longshore_model::JobState;

use super::error::DevError;
use crate::jobs::title;
use crate::output::harmless;
use crate::pretty::pretty;
use crate::screen::{Screen, Step, span};
use crate::traceback::readable;

/// How long a job is awaited before its chunks are followed. A warm worker usually needs less.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const FOLLOW_WAIT: Duration = Duration::from_secs(1);

/// How long to wait for the worker's last log lines, which are read several times per second.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(300);

/// The content of `test_input.json`: a request with an `input`.
pub(crate) struct Sample {
    /// The request's body: JSON text.
    pub(crate) body: Bytes,
}

/// The result of the sample job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleResult {
    /// The job's state is `COMPLETED`.
    Completed,
    /// The job ended in another state.
    NotCompleted,
    /// Every worker exits before it takes the job.
    NoWorker,
}

impl Sample {
    /// Reads and checks the sample: an object with an `input`, the format of the SDK.
    pub(crate) fn load(path: &Path) -> Result<Self, DevError> {
        let text = std::fs::read(path)
            .map_err(|error| DevError::new(format!("cannot read {}: {error}", path.display())))?;
        let value: serde_json::Value = serde_json::from_slice(&text)
            .map_err(|error| DevError::new(format!("{} is not JSON: {error}", path.display())))?;
        if !value.get("input").is_some_and(serde_json::Value::is_object) {
            let shape = r#"{"input": {"prompt": "…"}}"#;
            return Err(DevError::new(format!(
                "{} must be an object with an object `input`, like {shape}",
                path.display()
            )));
        }
        Ok(Self { body: text.into() })
    }
}

/// Submits the sample and follows the job until it ends.
pub(crate) async fn run(
    client: &Client,
    slug: &str,
    sample: &Sample,
    screen: &Screen,
) -> Result<SampleResult, DevError> {
    let step = screen.step("running test_input.json");
    let since = Instant::now();
    let mut job = client.runsync(slug, sample.body.clone(), FIRST_WAIT, None).await?;
    let mut offset = 0;
    loop {
        let page = client.stream(slug, job.id, offset, FOLLOW_WAIT).await?;
        for chunk in &page.stream {
            screen.line(&format!("  {} {}", screen.cyan("›"), chunk.output.get()));
            offset += 1;
        }
        if page.status.is_terminal() && page.stream.is_empty() {
            break;
        }
        let health = client.health(slug).await?;
        let workers = &health.workers;
        if keeps_crashing(workers) {
            // Without this, a later worker would run the job unobserved.
            let _ = client.cancel(slug, job.id).await;
            step.failed("every worker exits before it takes test_input.json");
            // The further lines of the reason are the worker's last log lines.
            if let Some(reason) = health.reasons.unhealthy.as_deref().and_then(|reason| reason.lines().next())
            {
                screen.line(&format!("    {}", harmless(reason.trim_end_matches("; its last log lines:"))));
            }
            return Ok(SampleResult::NoWorker);
        }
        let explanation = match page.status {
            JobState::InQueue => client.explain(slug, Some(job.id)).await.ok(),
            _ => None,
        };
        match explanation {
            Some(Explanation { cause, .. }) if workers.running == 0 => step.detail(title(&cause)),
            _ => step.detail(stage(page.status, workers)),
        }
    }
    job = client.status(slug, job.id).await?;
    let took = since.elapsed();
    // The worker's log lines are printed before the result.
    tokio::time::sleep(LAST_WORDS_WAIT).await;
    Ok(show(&job, took, step, screen))
}

fn keeps_crashing(workers: &HealthWorkers) -> bool {
    workers.unhealthy > 0 && workers.initializing + workers.idle + workers.running == 0
}

fn stage(state: JobState, workers: &HealthWorkers) -> &'static str {
    match state {
        JobState::InQueue if workers.initializing > 0 => "a worker is starting",
        JobState::InQueue if workers.running > 0 => "the worker is busy",
        JobState::InQueue => "waiting for a worker",
        _ => "the handler is running",
    }
}

fn show(job: &Job, took: Duration, step: Step, screen: &Screen) -> SampleResult {
    let ms = |ms: Option<u64>| span(Duration::from_millis(ms.unwrap_or(0)));
    let times =
        format!("(queued {}, ran {}, {} in all)", ms(job.delay_time), ms(job.execution_time), span(took));
    let said = format!("test_input.json {} {}", job.status, screen.dim(&times));
    let verdict = if job.status == JobState::Completed {
        step.done(&said);
        SampleResult::Completed
    } else {
        step.failed(&said);
        SampleResult::NotCompleted
    };
    if let Some(error) = &job.error {
        for line in readable(error).lines() {
            screen.line(&format!("    {line}"));
        }
    }
    if let Some(output) = &job.output {
        screen.result(&pretty(output));
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_without_an_input_object_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("test_input.json");
        std::fs::write(&path, r#"{"prompt": "x"}"#).unwrap();
        assert!(Sample::load(&path).err().unwrap().message.contains("an object `input`"));
    }
}
