//! The body of a submit request, built from the command line.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{endpoint_name, span};
use crate::exit::{CommandError, CommandResult, cannot};
use crate::input;

/// Arguments that `run` and `runsync` share.
#[derive(Debug, Args)]
pub struct RequestArgs {
    /// The endpoint's id or slug
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name)]
    pub(crate) endpoint: String,
    /// The input: a JSON object, @FILE, or - [default: {}]
    #[arg(value_name = "INPUT", default_value = "{}", hide_default_value = true)]
    pub(crate) input: String,
    /// INPUT is the whole request, including `input`
    #[arg(long)]
    pub(crate) whole: bool,
    /// Call this address when the job ends
    #[arg(long, value_name = "URL", conflicts_with = "whole")]
    pub(crate) webhook: Option<String>,
    /// Longest run of the job, such as 10m
    #[arg(long, value_name = "TIME", value_parser = span, conflicts_with = "whole")]
    pub(crate) execution_timeout: Option<Duration>,
    /// Delete the job after this time, in any state
    #[arg(long, value_name = "TIME", value_parser = span, conflicts_with = "whole")]
    pub(crate) ttl: Option<Duration>,
    /// Start no worker for this job
    #[arg(long, conflicts_with = "whole")]
    pub(crate) low_priority: bool,
    /// Repeating the request makes no second job
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Serialize)]
struct Request<'a> {
    input: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Policy>,
}

#[derive(PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    low_priority: bool,
}

impl RequestArgs {
    /// Returns the request's body with the input as it was written.
    pub(crate) fn body(&self) -> CommandResult<Bytes> {
        let input = input::object(&self.input)?;
        if self.whole {
            #[derive(serde::Deserialize)]
            struct Whole {
                #[serde(default)]
                input: Option<Box<RawValue>>,
            }
            let whole: Whole =
                serde_json::from_str(input.get()).map_err(|error| cannot("read the request", error))?;
            return match whole.input {
                Some(_) => Ok(input.get().to_owned().into()),
                None => Err(CommandError::usage("the request has no `input`")
                    .next("omit --whole if the JSON is the input itself")),
            };
        }
        let ms = |time: Option<Duration>| time.map(|time| time.as_millis() as u64);
        let policy = Policy {
            execution_timeout: ms(self.execution_timeout),
            ttl: ms(self.ttl),
            low_priority: self.low_priority,
        };
        let request = Request {
            input: &input,
            webhook: self.webhook.as_deref(),
            policy: (policy != Policy::default()).then_some(policy),
        };
        serde_json::to_vec(&request).map(Bytes::from).map_err(|error| cannot("write the request", error))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        request: RequestArgs,
    }

    fn body(line: &[&str]) -> CommandResult<String> {
        let line = CommandLine::parse_from([&["run"], line].concat());
        line.request.body().map(|body| String::from_utf8(body.to_vec()).unwrap())
    }

    #[test]
    fn a_request_has_what_was_said_and_the_input_as_it_was_written() {
        assert_eq!(body(&["hello"]).unwrap(), r#"{"input":{}}"#);
        let said = ["hello", r#"{"n": 1.0}"#, "--ttl", "1h", "--low-priority", "--webhook", "http://w"];
        let whole =
            r#"{"input":{"n": 1.0},"webhook":"http://w","policy":{"ttl":3600000,"lowPriority":true}}"#;
        assert_eq!(body(&said).unwrap(), whole);
        assert_eq!(body(&["hello", whole, "--whole"]).unwrap(), whole);
        assert!(body(&["hello", "{}", "--whole"]).unwrap_err().message.contains("no `input`"));
    }
}
