//! The table of `longshore usage`: names for people, and a row for the whole.

use std::collections::BTreeMap;
use std::time::Duration;

use longshore_client::{Client, Collection};
use serde_json::{Map, Value, json};

use super::{NAMES, Step, UsageArgs, UsageGroup, UsageOf, UsageSum};
use crate::output::{Styles, parsed};
use crate::screen::span;
use crate::table::{Column, Table};

const HOUR_MS: u64 = 3_600_000;

const TIME: Column = Column::new("FROM", "time");
const ENDPOINT: Column = Column::new("ENDPOINT", "endpointId");
const WORKER: Column = Column::new("WORKER", "podId");
const GPU: Column = Column::new("GPU TYPE", "gpuTypeId");
const OWNER: Column = Column::new("OWNER", "owner");
const KEY: Column = Column::new("KEY", "key");
const JOBS: Column = Column::new("JOBS", "jobs");
const RAN: Column = Column::new("JOBS RAN", "executionMs");
const WORKER_TIME: Column = Column::new("WORKER TIME", "workerTime");
const BUSY: Column = Column::new("BUSY", "busy");
const COST: Column = Column::new("COST", "cost");

fn columns(by: UsageGroup, by_steps: bool) -> Vec<Column> {
    let names: &[Column] = match by {
        UsageGroup::Endpoint => &[ENDPOINT],
        UsageGroup::Worker => &[ENDPOINT, WORKER, GPU],
        UsageGroup::Gpu => &[GPU],
        UsageGroup::Owner => &[OWNER, ENDPOINT],
        UsageGroup::Key => &[KEY, OWNER, ENDPOINT],
    };
    let sums: &[Column] = match by {
        UsageGroup::Endpoint => &[WORKER_TIME, BUSY, COST],
        UsageGroup::Worker | UsageGroup::Gpu => &[WORKER_TIME, COST],
        UsageGroup::Owner | UsageGroup::Key => &[JOBS, RAN, WORKER_TIME, COST],
    };
    let time: &[Column] = if by_steps { &[TIME] } else { &[] };
    [time, names, sums].concat()
}

/// The names of endpoints and keys by id, as far as the key may list them.
pub(super) async fn names(client: &Client, by: UsageGroup) -> BTreeMap<String, String> {
    let endpoints = client.endpoints().await.unwrap_or_default();
    let endpoints = endpoints
        .into_iter()
        .map(|endpoint| (endpoint.id.to_string(), endpoint.slug.unwrap_or(endpoint.name)));
    let mut names: BTreeMap<String, String> = endpoints.collect();
    if by == UsageGroup::Key {
        let keys = client.list(Collection::Keys).await.unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let of_key = |key: Value| Some((text(&key["id"])?, text(&key["name"])?));
        names.extend(keys.iter().filter_map(|key| of_key(parsed(key))));
    }
    names.retain(|_, name| !name.is_empty());
    names
}

/// Returns the table of the sums, with a row for all of them if there are several.
pub(super) fn show(
    args: &UsageArgs,
    sums: &BTreeMap<UsageOf, UsageSum>,
    names: &BTreeMap<String, String>,
    currency: &str,
    styles: Styles,
) -> String {
    let columns = columns(args.by, args.step.is_some());
    let mut table = Table::new(&columns);
    let mut all = UsageSum::ZERO;
    for (of, sum) in sums {
        let cells = NAMES.iter().zip(of).filter_map(|(name, value)| {
            let value = value.as_ref()?;
            let shown = match (*name, args.step) {
                ("time", Some(step)) => start(value, step),
                ("endpointId" | "key", _) => names.get(value).unwrap_or(value).clone(),
                _ => value.clone(),
            };
            Some(((*name).to_owned(), json!(shown)))
        });
        table.add(&row(cells.collect(), sum, currency));
        all.add(sum);
    }
    if sums.len() > 1 {
        let first = Map::from_iter([(columns[0].member.to_owned(), json!("all"))]);
        table.add(&row(first, &all, currency));
    }
    table.show(styles)
}

/// The cells of a sum.
fn row(mut row: Map<String, Value>, sum: &UsageSum, currency: &str) -> Value {
    if let Some((jobs, ms)) = sum.jobs {
        row.insert("jobs".to_owned(), json!(jobs));
        row.insert("executionMs".to_owned(), json!(hours(ms)));
    }
    row.insert("workerTime".to_owned(), json!(hours(sum.worker_ms)));
    if let Some(busy_ms) = sum.busy_ms.filter(|_| sum.worker_ms > 0) {
        let percent = busy_ms as f64 / sum.worker_ms as f64 * 100.0;
        row.insert("busy".to_owned(), json!(format!("{percent:.0} %")));
    }
    row.insert("cost".to_owned(), json!(money(sum.amount, currency)));
    Value::Object(row)
}

/// The start of a step, as short as the step allows. The server writes times in UTC.
fn start(time: &str, step: Step) -> String {
    let length = match step {
        Step::Hour => 16,
        Step::Day | Step::Week => 10,
        Step::Month => 7,
        Step::Year => 4,
    };
    time.get(..length).unwrap_or(time).replace('T', " ")
}

/// A time of work: in hours if it is long, because prices are per hour.
fn hours(ms: u64) -> String {
    if ms < 10 * HOUR_MS {
        span(Duration::from_millis(ms))
    } else {
        format!("{:.1} h", ms as f64 / HOUR_MS as f64)
    }
}

/// An amount of money in the currency of the server's settings.
fn money(amount: f64, currency: &str) -> String {
    let text = match amount {
        0.0 => "0".to_owned(),
        amount if amount < 0.01 => "< 0.01".to_owned(),
        amount => format!("{amount:.2}"),
    };
    format!("{text} {currency}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        usage: UsageArgs,
    }

    fn sum(worker_ms: u64, busy_ms: Option<u64>, amount: f64) -> UsageSum {
        UsageSum { worker_ms, gpu_ms: 0, busy_ms, amount, jobs: None }
    }

    fn shown(line: &[&str], sums: Vec<([Option<&str>; 6], UsageSum)>) -> String {
        let args = CommandLine::parse_from([&["usage"], line].concat()).usage;
        let sums =
            sums.into_iter().map(|(of, sum)| (of.map(|value| value.map(str::to_owned)), sum)).collect();
        let names =
            BTreeMap::from([("e1".to_owned(), "chat".to_owned()), ("k1".to_owned(), "ci".to_owned())]);
        show(&args, &sums, &names, "EUR", Styles::plain())
    }

    #[test]
    fn the_last_row_is_the_whole() {
        let sums = vec![
            ([None, Some("e1"), None, None, None, None], sum(90 * HOUR_MS, Some(9 * HOUR_MS), 180.0)),
            ([None, Some("e2"), None, None, None, None], sum(60_000, None, 0.001)),
        ];
        let expected = "\
ENDPOINT  WORKER TIME  BUSY  COST
chat      90.0 h       10 %  180.00 EUR
e2        1 min        -     < 0.01 EUR
all       90.0 h       -     180.00 EUR
";
        assert_eq!(shown(&[], sums), expected);
    }

    #[test]
    fn rows_by_steps_begin_with_their_time() {
        let of = [Some("2030-01-31T13:00:00.000Z"), Some("e1"), None, None, Some("acme"), Some("k1")];
        let sums = vec![(of, UsageSum { jobs: Some((3, 4_000)), ..sum(60_000, None, 0.0) })];
        let expected = "\
FROM              KEY  OWNER  ENDPOINT  JOBS  JOBS RAN  WORKER TIME  COST
2030-01-31 13:00  ci   acme   chat         3  4.0 s     1 min        0 EUR
";
        assert_eq!(shown(&["--by", "key", "--step", "hour"], sums), expected);
        let days = [Step::Day, Step::Week, Step::Month, Step::Year];
        let starts = days.map(|step| start("2030-01-31T13:00:00.000Z", step));
        assert_eq!(starts, ["2030-01-31", "2030-01-31", "2030-01", "2030"]);
    }
}
