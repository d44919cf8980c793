//! `longshore explain`: why a job waits, and what to type about it.

use std::time::Duration;

use clap::Args;
use longshore_client::{ClientError, Explanation, WaitAction, WaitCause};
use longshore_model::JobId;
use serde_json::Value;

use super::{endpoint_name, job_id};
use crate::exit::{CommandError, CommandExit, CommandResult, cannot, needing};
use crate::human::count;
use crate::output::{OutputFormat, Styles, harmless};
use crate::remote::{Connection, ServerArgs};
use crate::screen::span;

/// The scopes of keys that may read the state of an endpoint.
pub(super) const READERS: &str = "`jobs` or `read`";

/// Arguments of `longshore explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The endpoint's id or slug, or a job's id alone
    #[arg(index = 1, value_name = "ENDPOINT", value_parser = endpoint_name)]
    endpoint: String,
    /// The job's id [default: all jobs of the endpoint]
    #[arg(index = 2, value_name = "JOB", value_parser = job_id)]
    job: Option<JobId>,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Prints why a job or the jobs of an endpoint wait.
pub(crate) async fn explain(args: &ExplainArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let (endpoint, job) = match (args.job, args.endpoint.parse::<JobId>()) {
        (None, Ok(job)) => (endpoint_of(&session, job).await?, Some(job)),
        (job, _) => (args.endpoint.clone(), job),
    };
    let text = session.client.explain_text(&endpoint, job).await.map_err(needing(READERS, &endpoint))?;
    if session.output.format != OutputFormat::Table {
        session.output.record(&text)?;
        return Ok(CommandExit::Success);
    }
    let explanation: Explanation =
        serde_json::from_str(text.get()).map_err(|error| cannot("read the server's answer", error))?;
    session.output.text(&shown(&endpoint, job, &explanation, session.output.styles))?;
    Ok(CommandExit::Success)
}

/// The endpoint that has this job, among those that the key may list.
async fn endpoint_of(session: &Connection, job: JobId) -> CommandResult<String> {
    let endpoints = session.client.endpoints().await.map_err(|error| match error {
        ClientError::Refused { status: 401, .. } => CommandError::from(error).next(format!(
            "only a key with `read` or `manage` may list the endpoints; with another key name the job's endpoint, too: \
             longshore explain ENDPOINT {job}"
        )),
        error => error.into(),
    })?;
    for endpoint in endpoints {
        match session.client.status(endpoint.id.as_str(), job).await {
            Ok(_) => return Ok(endpoint.slug.unwrap_or_else(|| endpoint.id.to_string())),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(needing(READERS, endpoint.id.as_str())(error)),
        }
    }
    let message = format!("no endpoint has the job {job}; it may have expired");
    Err(CommandError::new(CommandExit::NotFound, message).next("longshore requests ENDPOINT"))
}

/// The explanation as text for people.
fn shown(endpoint: &str, job: Option<JobId>, explanation: &Explanation, styles: Styles) -> String {
    let mut lines = vec![head(endpoint, job, explanation), String::new()];
    let cause = &explanation.cause;
    lines.push(styles.bold(&harmless(&cause.title)));
    lines.push(format!("  {}", harmless(&cause.text)));
    lines.extend(log_lines(cause));
    for other in &explanation.also {
        lines.push(format!("  also: {}", harmless(&other.text)));
        lines.extend(log_lines(other));
    }
    if let Some(estimate) = &explanation.estimate {
        let [min, max] = [estimate.min_ms, estimate.max_ms].map(|ms| span(Duration::from_millis(ms)));
        lines.push(format!("  probably starts in {min} to {max}"));
    }
    let causes = std::iter::once(cause).chain(&explanation.also);
    let actions = causes.flat_map(|cause| cause.actions.iter().map(move |action| (cause, action)));
    let commands = actions.filter_map(|(cause, action)| command(endpoint, cause, action));
    let commands: Vec<String> = commands.map(|command| format!("  {command}")).collect();
    if !commands.is_empty() {
        lines.push(String::new());
        lines.extend(commands);
    }
    lines.join("\n") + "\n"
}

fn head(endpoint: &str, job: Option<JobId>, explanation: &Explanation) -> String {
    let mut parts = vec![job.map_or_else(|| endpoint.to_owned(), |job| format!("{endpoint} {job}"))];
    parts.extend(explanation.state.map(|state| state.to_string()));
    match (explanation.position, explanation.queued) {
        (Some(position), Some(queued)) => parts.push(format!("position {position} of {queued}")),
        (None, Some(queued)) if job.is_none() => parts.push(format!("{} queued", count(queued, "job"))),
        _ => {}
    }
    if let Some(ms) = explanation.waiting_ms {
        parts.push(format!("waiting for {}", span(Duration::from_millis(ms))));
    }
    parts.join(" · ")
}

/// The last lines of the worker's log, each marked.
pub(crate) fn log_lines(cause: &WaitCause) -> impl Iterator<Item = String> {
    cause.log_tail.iter().map(|line| format!("    | {}", harmless(line)))
}

/// The command line of an action, with its purpose; `None` for an action that this version does not know.
pub(crate) fn command(endpoint: &str, cause: &WaitCause, action: &WaitAction) -> Option<String> {
    let detail = |name: &str| cause.details.get(name);
    let command = match action.name.as_str() {
        "resume" => format!("longshore endpoint resume {endpoint}"),
        "changeGpus" => {
            format!(
                "longshore endpoint update {endpoint} --json '{{\"gpuTypeIds\": [\"…\"], \"gpuCount\": 1}}'"
            )
        }
        "tryNow" => format!("longshore workers try-now {endpoint}"),
        "openLog" => {
            let worker = detail("worker").and_then(Value::as_str)?;
            format!("longshore logs {endpoint} --worker {}", harmless(worker))
        }
        "showCommand" => {
            format!(
                "curl -X POST -H \"Authorization: Bearer $LONGSHORE_API_KEY\" $LONGSHORE_URL/v1/endpoints/{endpoint}/worker-token"
            )
        }
        "raiseWorkersMax" => {
            let present = detail("workersMax").and_then(Value::as_u64)?;
            format!("longshore endpoint update {endpoint} --workers-max {}", present + 1)
        }
        _ => return None,
    };
    Some(format!("{command}     # {}", harmless(&action.title)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_has_the_log_and_the_commands_to_type() {
        let explanation: Explanation = serde_json::from_str(
            r#"{"state": "IN_QUEUE", "waitingMs": 90000, "position": 5, "queued": 9, "estimate": {"minMs": 2000, "maxMs": 9000},
                "cause": {"code": "workers_crash", "blocking": true, "title": "Every worker crashes while it starts",
                    "text": "6 workers in a row ended.", "details": {"worker": "abc"}, "logTail": ["no \u001b[31mmodel"],
                    "actions": [{"do": "tryNow", "title": "Try now"}, {"do": "openLog", "title": "Open the log"},
                        {"do": "later", "title": "Unknown"}]},
                "also": [{"code": "ttl_near", "blocking": false, "title": "t", "text": "It is deleted in 3 min."}]}"#,
        )
        .unwrap();
        let job = "0190163d-8694-739b-aea5-966c26f8ad90".parse().unwrap();
        expect_test::expect![[r"
            hello 0190163d-8694-739b-aea5-966c26f8ad90 · IN_QUEUE · position 5 of 9 · waiting for 1 min 30 s

            Every worker crashes while it starts
              6 workers in a row ended.
                | no �[31mmodel
              also: It is deleted in 3 min.
              probably starts in 2.0 s to 9.0 s

              longshore workers try-now hello     # Try now
              longshore logs hello --worker abc     # Open the log
        "]]
        .assert_eq(&shown("hello", Some(job), &explanation, Styles::plain()));
    }

    #[test]
    fn what_would_block_the_next_job_has_its_log_too() {
        let explanation: Explanation = serde_json::from_str(
            r#"{"state": null, "waitingMs": null, "position": null, "queued": 0, "estimate": null,
                "cause": {"code": "not_waiting", "blocking": false, "title": "No job waits", "text": "No job is queued."},
                "also": [{"code": "workers_crash", "blocking": true, "title": "t", "text": "6 workers in a row ended.",
                    "logTail": ["no model"], "actions": [{"do": "tryNow", "title": "Try now"}]}]}"#,
        )
        .unwrap();
        expect_test::expect![[r"
            hello · 0 jobs queued

            No job waits
              No job is queued.
              also: 6 workers in a row ended.
                | no model

              longshore workers try-now hello     # Try now
        "]]
        .assert_eq(&shown("hello", None, &explanation, Styles::plain()));
    }
}
