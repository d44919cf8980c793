//! `longshore top`: shows queues, workers, rates and reasons of all endpoints repeatedly.

mod layout;
mod reading;
mod reasons;
mod trend;

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use clap::Args;
use serde_json::value::RawValue;

use self::layout::cut;
use self::reading::{EndpointRow, Reading, rows};
use self::reasons::Reasons;
use self::trend::Trends;
use crate::exit::{CommandExit, CommandResult, cannot};
use crate::human::{count, ms_cell};
use crate::jobs::span;
use crate::output::OutputFormat;
use crate::remote::{Connection, ServerArgs};
use crate::stop::StopRequest;
use crate::table::Column;

/// Escape codes that switch to the alternate screen, hide the cursor and cut long lines, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Time between the two readings of `--once`, from which the rates are computed.
const ONCE_INTERVAL: Duration = Duration::from_secs(1);

/// Pause between two requests with `--once`. The server returns the same page for one second.
const AGAIN: Duration = Duration::from_millis(200);
const SAME_MAX: Duration = Duration::from_secs(5);

/// The columns without a terminal. Nothing is cut, so that other programs can read it.
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
    Column::new("GPUS", "gpus"),
    Column::new("WHY JOBS WAIT", "cause.title"),
];

const EXAMPLES: &str = "\
Examples:
  longshore top
  longshore top --once -o json

BUSY, IDLE, START and ILL count workers: with a job, without one, that are
starting, and that are not started because earlier ones crashed. TREND has the
queued jobs since `top` started. Where jobs wait, the reason stands beside the
endpoint, or below it in a narrow terminal; `longshore explain ENDPOINT` has all
of it.";

/// Arguments of `longshore top`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
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

/// Shows the endpoints until Ctrl-C, or once with `--once`.
pub(crate) async fn top(args: &TopArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let interval = args.interval.unwrap_or(if args.once { ONCE_INTERVAL } else { 2 * ONCE_INTERVAL });
    let interval = interval.max(Duration::from_millis(100));
    if args.once { once(&session, interval).await } else { repeat(&session, interval).await }
}

/// Whether tables are for a person at a terminal.
fn is_for_terminal(session: &Connection) -> bool {
    session.output.format == OutputFormat::Table && std::io::stdout().is_terminal()
}

async fn once(session: &Connection, interval: Duration) -> CommandResult {
    let before = Reading::take(&session.client).await?;
    tokio::time::sleep(interval).await;
    let mut now = Reading::take(&session.client).await?;
    while now.is_same(&before) && now.elapsed_since(&before) < SAME_MAX {
        tokio::time::sleep(AGAIN).await;
        now = Reading::take(&session.client).await?;
    }
    let mut rows = rows(&before, &now);
    Reasons::default().fill(&session.client, &mut rows).await;
    if is_for_terminal(session) {
        let (_, wide) = screen_size();
        session.output.line(&layout::lines(&rows, wide, session.output.styles).join("\n"))?;
    } else {
        session.output.records(COLUMNS, &records(&rows)?)?;
    }
    Ok(CommandExit::Success)
}

async fn repeat(session: &Connection, interval: Duration) -> CommandResult {
    let mut before = Reading::take(&session.client).await?;
    let mut stop = StopRequest::listen().map_err(|error| cannot("listen for Ctrl-C", error))?;
    let (mut reasons, mut trends) = (Reasons::default(), Trends::default());
    let redraws = is_for_terminal(session);
    if redraws {
        session.output.text(ENTER)?;
    }
    let outcome = loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = stop.requested() => break Ok(CommandExit::Success),
        }
        match Reading::take(&session.client).await {
            Ok(now) if now.is_same(&before) => {}
            Ok(now) => {
                let mut rows = rows(&before, &now);
                reasons.fill(&session.client, &mut rows).await;
                trends.fill(&mut rows);
                show(session, redraws, &rows)?;
                before = now;
            }
            // The server may be restarting: the error is shown and the view continues.
            Err(error) if redraws => {
                let line = cut(&error.to_string(), screen_size().1);
                session.output.text(&format!("\r\x1b[K{line}"))?;
            }
            Err(error) => break Err(error.into()),
        }
    };
    if redraws {
        session.output.text(LEAVE)?;
    }
    outcome
}

fn records(rows: &[EndpointRow]) -> CommandResult<Vec<Box<RawValue>>> {
    rows.iter().map(EndpointRow::record).collect()
}

fn show(session: &Connection, redraws: bool, rows: &[EndpointRow]) -> CommandResult<()> {
    let title = format!("{}  {}", session.client.base_url(), summary(rows));
    if !redraws {
        session.output.say(&title)?;
        return session.output.records(COLUMNS, &records(rows)?);
    }
    let (high, wide) = screen_size();
    let styles = session.output.styles;
    let head = [cut(&title, wide), styles.dim(&cut("Ctrl-C ends", wide)), String::new()];
    let mut frame = String::from("\x1b[H");
    for line in head.into_iter().chain(layout::lines(rows, wide, styles)).take(high.saturating_sub(1)) {
        let _ = write!(frame, "{line}\x1b[K\r\n");
    }
    session.output.text(&format!("{frame}\x1b[J"))
}

/// `2 endpoints · 12 queued · 3 running · 4 GPUs`.
fn summary(rows: &[EndpointRow]) -> String {
    let sum = |of: fn(&EndpointRow) -> u64| rows.iter().map(of).sum::<u64>();
    let mut text = format!(
        "{} · {} queued · {} running",
        count(rows.len() as u64, "endpoint"),
        sum(|row| row.queued),
        sum(|row| row.running)
    );
    let gpus = sum(|row| row.gpus);
    if gpus > 0 {
        let _ = write!(text, " · {}", count(gpus, "GPU"));
    }
    text
}

/// Rows and columns of the terminal; a default if they are unknown.
fn screen_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let known = size.ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
    known.map_or((24, 80), |size| (usize::from(size.ws_row), usize::from(size.ws_col)))
}
