//! `longshore top`: shows queues, workers and rates of all endpoints repeatedly.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use clap::Args;
use longshore_client::{Client, ClientError};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::exit::{CommandExit, CommandResult, cannot};
use crate::human::{count, ms_cell};
use crate::jobs::span;
use crate::metrics::{EndpointNumbers, endpoints, taken_at_s};
use crate::output::OutputFormat;
use crate::remote::{Connection, ServerArgs};
use crate::stop::StopRequest;
use crate::table::{Column, Table};

/// Escape codes that switch to the alternate screen and hide the cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Time between the two readings of `--once`, from which the rates are computed.
const ONCE_INTERVAL: Duration = Duration::from_secs(1);

/// Pause between two requests with `--once`. The server returns the same page for one second.
const AGAIN: Duration = Duration::from_millis(200);
const SAME_MAX: Duration = Duration::from_secs(5);

const COLUMNS: &[Column] = &[
    Column::new("ENDPOINT", "endpoint"),
    Column::new("QUEUED", "queued"),
    Column::new("RUNNING", "running"),
    Column::new("DONE/S", "donePerSecond"),
    Column::new("FAIL/S", "failedPerSecond"),
    Column::new("DELAY", "delayMs").shown_as(ms_cell),
    Column::new("BUSY", "workers.running"),
    Column::new("IDLE", "workers.idle"),
    Column::new("START", "workers.initializing"),
    Column::new("ILL", "workers.unhealthy"),
];

/// Arguments of `longshore top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Print one table and exit
    #[arg(long)]
    once: bool,
    /// Time between two tables [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = span)]
    interval: Option<Duration>,
    #[command(flatten)]
    remote: ServerArgs,
}

/// One reading of the metrics.
struct Snapshot {
    at: Instant,
    /// The server's time of the reading, if reported.
    taken_at_s: Option<f64>,
    endpoints: BTreeMap<String, EndpointNumbers>,
}

impl Snapshot {
    async fn take(client: &Client) -> Result<Self, ClientError> {
        let page = client.metrics().await?;
        Ok(Self { at: Instant::now(), taken_at_s: taken_at_s(&page), endpoints: endpoints(&page) })
    }

    /// Whether both readings are the same page of the server.
    fn is_same(&self, other: &Self) -> bool {
        self.taken_at_s.is_some() && self.taken_at_s == other.taken_at_s
    }

    /// Seconds since an earlier reading.
    fn seconds_since(&self, before: &Self) -> f64 {
        let said = self.taken_at_s.zip(before.taken_at_s).map(|(now, before)| now - before);
        let measured = || self.at.duration_since(before.at).as_secs_f64();
        said.filter(|seconds| *seconds > 0.0).unwrap_or_else(measured).max(0.001)
    }
}

/// Shows the endpoints until Ctrl-C, or once with `--once`.
pub(crate) async fn top(args: &TopArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let interval = args.interval.unwrap_or(if args.once { ONCE_INTERVAL } else { 2 * ONCE_INTERVAL });
    let interval = interval.max(Duration::from_millis(100));
    let mut before = Snapshot::take(&session.client).await?;
    if args.once {
        tokio::time::sleep(interval).await;
        let mut now = Snapshot::take(&session.client).await?;
        while now.is_same(&before) && now.at.duration_since(before.at) < SAME_MAX {
            tokio::time::sleep(AGAIN).await;
            now = Snapshot::take(&session.client).await?;
        }
        session.output.records(COLUMNS, &rows(&before, &now)?)?;
        return Ok(CommandExit::Success);
    }
    let mut stop = StopRequest::listen().map_err(|error| cannot("listen for Ctrl-C", error))?;
    let redraws = session.output.format == OutputFormat::Table && std::io::stdout().is_terminal();
    if redraws {
        session.output.text(ENTER)?;
    }
    let outcome = loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = stop.requested() => break Ok(CommandExit::Success),
        }
        match Snapshot::take(&session.client).await {
            Ok(now) if now.is_same(&before) => {}
            Ok(now) => {
                show(&session, redraws, &before, &now)?;
                before = now;
            }
            // The server may be restarting: the error is shown and the view continues.
            Err(error) if redraws => session.output.text(&format!("\r\x1b[K{error}"))?,
            Err(error) => break Err(error.into()),
        }
    };
    if redraws {
        session.output.text(LEAVE)?;
    }
    outcome
}

fn show(session: &Connection, redraws: bool, before: &Snapshot, now: &Snapshot) -> CommandResult<()> {
    let rows = rows(before, now)?;
    if session.output.format != OutputFormat::Table {
        return session.output.records(COLUMNS, &rows);
    }
    let mut table = Table::new(COLUMNS);
    for row in &rows {
        table.add(&crate::output::parsed(row));
    }
    let title = format!("{}  {}", session.client.base_url(), count(rows.len() as u64, "endpoint"));
    let text = table.show(session.output.styles);
    if !redraws {
        return session.output.text(&format!("{title}\n{text}\n"));
    }
    let (high, wide) = screen_size();
    let mut frame = String::from("\x1b[H");
    let hint = session.output.styles.dim("Ctrl-C ends");
    for line in
        [title.as_str(), hint.as_str(), ""].into_iter().chain(text.lines()).take(high.saturating_sub(1))
    {
        // A wrapped line would shift the lines below.
        let line: String =
            if line.contains('\x1b') { line.to_owned() } else { line.chars().take(wide).collect() };
        let _ = write!(frame, "{line}\x1b[K\r\n");
    }
    session.output.text(&format!("{frame}\x1b[J"))
}

/// Rows and columns of the terminal; a default if they are unknown.
fn screen_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let known = size.ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
    known.map_or((24, 80), |size| (usize::from(size.ws_row), usize::from(size.ws_col)))
}

/// One row per endpoint; the longest queue is first.
fn rows(before: &Snapshot, now: &Snapshot) -> CommandResult<Vec<Box<RawValue>>> {
    let seconds = now.seconds_since(before);
    let mut endpoints: Vec<(&String, &EndpointNumbers)> = now.endpoints.iter().collect();
    endpoints.sort_by(|(_, a), (_, b)| b.queued.total_cmp(&a.queued).then_with(|| a.name.cmp(&b.name)));
    let row = |(id, numbers): (&String, &EndpointNumbers)| {
        // Counters of a new endpoint, or after a restart of the server, start at 0.
        let fresh = EndpointNumbers::default();
        let earlier = before.endpoints.get(id).unwrap_or(&fresh);
        let grown = |of: fn(&EndpointNumbers) -> f64| (of(numbers) - of(earlier)).max(0.0);
        let rate = |of| (grown(of) / seconds * 10.0).round() / 10.0;
        let taken = grown(|of| of.delay_count);
        let delay = (taken > 0.0).then(|| (grown(|of| of.delay_sum_s) / taken * 1_000.0).round() as u64);
        let workers: BTreeMap<_, _> =
            numbers.workers.iter().map(|(name, count)| (name, *count as u64)).collect();
        let record = json!({
            "id": id, "endpoint": numbers.name, "queued": numbers.queued as u64,
            "running": numbers.running as u64, "donePerSecond": rate(|of| of.completed),
            "failedPerSecond": rate(|of| of.failed), "delayMs": delay, "workers": workers,
        });
        to_raw_value(&record).map_err(|error| cannot("write a row", error))
    };
    endpoints.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_delays_come_from_two_readings() {
        let numbers = |completed, count, sum| EndpointNumbers {
            name: "a".into(),
            completed,
            delay_count: count,
            delay_sum_s: sum,
            ..EndpointNumbers::default()
        };
        let at = Instant::now();
        let reading = |after_s, numbers| Snapshot {
            at: at + Duration::from_secs(after_s),
            taken_at_s: None,
            endpoints: BTreeMap::from([("id".to_owned(), numbers)]),
        };
        let rows =
            rows(&reading(0, numbers(10.0, 10.0, 5.0)), &reading(2, numbers(15.0, 20.0, 6.0))).unwrap();
        assert!(rows[0].get().contains("\"donePerSecond\":2.5"), "{}", rows[0]);
        assert!(rows[0].get().contains("\"delayMs\":100"), "{}", rows[0]);
        // The server's own times of the readings are preferred.
        let said = |after_s, taken_at_s| Snapshot {
            taken_at_s: Some(taken_at_s),
            ..reading(after_s, numbers(0.0, 0.0, 0.0))
        };
        assert!(said(2, 7.0).is_same(&said(1, 7.0)) && !said(2, 7.5).is_same(&said(1, 7.0)));
        assert_eq!(
            (
                said(9, 7.5).seconds_since(&said(1, 7.0)),
                reading(9, numbers(0.0, 0.0, 0.0)).seconds_since(&said(1, 7.0))
            ),
            (0.5, 8.0)
        );
    }
}
