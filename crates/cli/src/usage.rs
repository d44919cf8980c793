//! `longshore usage`: how long workers ran, and what that cost.

mod table;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use longshore_client::{Client, ClientError};
use serde::Deserialize;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

use crate::exit::{CommandExit, CommandResult, cannot, needing_for_all};
use crate::input::moment;
use crate::jobs::{endpoint_name, since, span};
use crate::output::OutputFormat;
use crate::remote::ServerArgs;

/// The members that say what a record is about, in the order in which they are shown.
const NAMES: [&str; 6] = ["time", "endpointId", "podId", "gpuTypeId", "owner", "key"];

/// What gets a row of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum UsageGroup {
    Endpoint,
    Worker,
    Gpu,
    Owner,
    Key,
}

/// The time that one row covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// Arguments of `longshore usage`.
#[derive(Debug, Args)]
pub struct UsageArgs {
    /// The endpoint's id or slug [default: all endpoints]
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name)]
    endpoint: Option<String>,
    /// By endpoint, worker, gpu, owner or key
    #[arg(long, value_name = "GROUP", value_enum, default_value = "endpoint", hide_possible_values = true)]
    by: UsageGroup,
    /// The time range up to now
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "30d")]
    last: Duration,
    /// Start of the range: 2030-01-31 or 2030-01-31T12:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = moment, conflicts_with = "last")]
    from: Option<Timestamp>,
    /// End of the range [default: now]
    #[arg(long, value_name = "WHEN", value_parser = moment, requires = "from")]
    to: Option<Timestamp>,
    /// A row per hour, day, week, month or year of each, in UTC
    #[arg(long, value_name = "STEP", value_enum, hide_possible_values = true)]
    step: Option<Step>,
    #[command(flatten)]
    remote: ServerArgs,
}

/// One record of the server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsageRecord {
    time_billed_ms: u64,
    gpu_ms: u64,
    busy_ms: Option<u64>,
    amount: f64,
    jobs: Option<u64>,
    execution_ms: Option<u64>,
    /// The time and the names.
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// The sum of records.
#[derive(Clone, Debug, PartialEq)]
struct UsageSum {
    worker_ms: u64,
    gpu_ms: u64,
    /// `None` if the busy time of a part is not known.
    busy_ms: Option<u64>,
    amount: f64,
    /// The number of jobs that ended and the time that they ran, where they are counted.
    jobs: Option<(u64, u64)>,
}

impl UsageSum {
    const ZERO: Self = Self { worker_ms: 0, gpu_ms: 0, busy_ms: Some(0), amount: 0.0, jobs: None };

    fn of(record: &UsageRecord) -> Self {
        Self {
            worker_ms: record.time_billed_ms,
            gpu_ms: record.gpu_ms,
            busy_ms: record.busy_ms,
            amount: record.amount,
            jobs: record.jobs.zip(record.execution_ms),
        }
    }

    fn add(&mut self, other: &Self) {
        self.worker_ms += other.worker_ms;
        self.gpu_ms += other.gpu_ms;
        self.busy_ms = self.busy_ms.zip(other.busy_ms).map(|(one, another)| one + another);
        self.amount += other.amount;
        let jobs = self.jobs.into_iter().chain(other.jobs);
        self.jobs = jobs.reduce(|(jobs, ms), (more, more_ms)| (jobs + more, ms + more_ms));
    }
}

/// What a sum is about: the values of [`NAMES`], `None` where it has none.
type UsageOf = [Option<String>; 6];

/// Prints the time of workers and its cost: a row for each group, and with a step for each of its steps.
pub(crate) async fn usage(args: &UsageArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let client = &session.client;
    let records = read(args, client).await?;
    let currency = client.currency().await.unwrap_or_default();
    let sums = summed(&records, args.step.is_some());
    if session.output.format != OutputFormat::Table {
        let texts = sums.iter().map(|(of, sum)| to_raw_value(&record(of, sum, &currency)));
        let texts = texts.collect::<Result<Vec<_>, _>>().map_err(|error| cannot("show the usage", error))?;
        session.output.records(&[], &texts)?;
        return Ok(CommandExit::Success);
    }
    if sums.is_empty() {
        session.output.line("no worker ran in this time")?;
        return Ok(CommandExit::Success);
    }
    let names = table::names(client, args.by).await;
    session.output.text(&table::show(args, &sums, &names, &currency, session.output.styles))?;
    // External workers have no time, and no cost.
    let has_time = sums.values().any(|sum| sum.worker_ms > 0);
    if has_time && sums.values().all(|sum| sum.amount == 0.0) {
        let hint = "nothing has a price: `[prices]` in the server's settings sets them";
        session.screen.line(&session.screen.dim(hint));
    }
    Ok(CommandExit::Success)
}

/// The server's records of the range, of the smallest number of times.
async fn read(args: &UsageArgs, client: &Client) -> CommandResult<Vec<UsageRecord>> {
    let from = args.from.map_or_else(|| since(args.last), Ok)?;
    let bucket = word(args.step.unwrap_or(Step::Year));
    let grouping = match args.by {
        UsageGroup::Endpoint => "endpointId",
        UsageGroup::Worker => "podId",
        UsageGroup::Gpu => "gpuTypeId",
        UsageGroup::Owner => "owner",
        UsageGroup::Key => "key",
    };
    let mut query = format!("bucketSize={bucket}&grouping={grouping}&startTime={from}");
    if let Some(to) = args.to {
        query = format!("{query}&endTime={to}");
    }
    // A deleted endpoint has usage, and is named by its id.
    let mut unknown = None;
    if let Some(endpoint) = &args.endpoint {
        let id = match client.endpoint(endpoint).await {
            Ok(endpoint) => endpoint.id.to_string(),
            Err(error @ ClientError::Refused { status: 404, .. }) => {
                unknown = Some(error);
                endpoint.clone()
            }
            Err(error) => return Err(needing_for_all("`read` or `manage`")(error)),
        };
        query = format!("{query}&endpointId={}", longshore_client::segment(&id));
    }
    let texts = client.usage(&query).await.map_err(needing_for_all("`read` or `manage`"))?;
    match unknown {
        Some(error) if texts.is_empty() => return Err(error.into()),
        _ => {}
    }
    let parsed = texts.iter().map(|text| serde_json::from_str(text.get()));
    parsed.collect::<Result<_, _>>().map_err(|error| cannot("read the server's answer", error))
}

/// The sums of the records with the same names and, by steps, the same time.
fn summed(records: &[UsageRecord], by_steps: bool) -> BTreeMap<UsageOf, UsageSum> {
    let mut sums: BTreeMap<UsageOf, UsageSum> = BTreeMap::new();
    for record in records {
        let is_in = |name: &str| by_steps || name != "time";
        let of = NAMES.map(|name| record.others.get(name).filter(|_| is_in(name)).and_then(Value::as_str));
        let sum = sums.entry(of.map(|value| value.map(str::to_owned)));
        let part = UsageSum::of(record);
        sum.and_modify(|sum| sum.add(&part)).or_insert(part);
    }
    sums
}

/// A sum as the JSON formats have it: with the members of the API, and the currency.
fn record(of: &UsageOf, sum: &UsageSum, currency: &str) -> Value {
    let names =
        NAMES.iter().zip(of).filter_map(|(name, value)| Some(((*name).to_owned(), json!(value.as_ref()?))));
    let mut record: Map<String, Value> = names.collect();
    if let Some((jobs, ms)) = sum.jobs {
        record.insert("jobs".to_owned(), json!(jobs));
        record.insert("executionMs".to_owned(), json!(ms));
    }
    record.insert("timeBilledMs".to_owned(), json!(sum.worker_ms));
    record.insert("gpuMs".to_owned(), json!(sum.gpu_ms));
    record.insert("busyMs".to_owned(), json!(sum.busy_ms));
    // As the server rounds, which hides the error of adding floating-point numbers.
    record.insert("amount".to_owned(), json!((sum.amount * 1e6).round() / 1e6));
    record.insert("currency".to_owned(), json!(currency));
    Value::Object(record)
}

fn word(step: Step) -> String {
    step.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(texts: Value) -> Vec<UsageRecord> {
        serde_json::from_value(texts).unwrap()
    }

    #[test]
    fn records_of_several_times_are_added_up() {
        let all = records(json!([
            { "time": "2029-12-31T00:00:00.000Z", "endpointId": "a", "timeBilledMs": 1000, "gpuMs": 2000, "busyMs": 400, "amount": 0.1 },
            { "time": "2030-01-01T00:00:00.000Z", "endpointId": "a", "timeBilledMs": 2000, "gpuMs": 4000, "busyMs": 600, "amount": 0.2 },
            { "time": "2030-01-01T00:00:00.000Z", "endpointId": "b", "timeBilledMs": 5, "gpuMs": 0, "busyMs": null, "amount": 0 },
        ]));
        let sums = summed(&all, false);
        let shown: Vec<Value> = sums.iter().map(|(of, sum)| record(of, sum, "EUR")).collect();
        assert_eq!(
            json!(shown),
            json!([
                { "endpointId": "a", "timeBilledMs": 3000, "gpuMs": 6000, "busyMs": 1000, "amount": 0.3, "currency": "EUR" },
                { "endpointId": "b", "timeBilledMs": 5, "gpuMs": 0, "busyMs": null, "amount": 0.0, "currency": "EUR" },
            ])
        );
        assert_eq!(summed(&all, true).len(), 3, "by steps, each time has its own");
    }

    #[test]
    fn busy_time_is_known_if_that_of_every_part_is() {
        let mut sum = UsageSum::ZERO;
        sum.add(&UsageSum { worker_ms: 2, gpu_ms: 4, busy_ms: Some(1), amount: 0.5, jobs: Some((1, 7)) });
        assert_eq!(
            sum,
            UsageSum { worker_ms: 2, gpu_ms: 4, busy_ms: Some(1), amount: 0.5, jobs: Some((1, 7)) }
        );
        sum.add(&UsageSum { worker_ms: 3, gpu_ms: 0, busy_ms: None, amount: 0.0, jobs: Some((2, 1)) });
        assert_eq!(sum, UsageSum { worker_ms: 5, gpu_ms: 4, busy_ms: None, amount: 0.5, jobs: Some((3, 8)) });
    }
}
