//! `longshore cancel`, `longshore retry` and `longshore purge`.

use super::{JobsArgs, PurgeArgs, follow};
use crate::confirm::confirm;
use crate::exit::{CommandExit, CommandResult};
use crate::human::count;
use crate::output::OutputFormat;

/// Cancels each job of `args` and prints its state; stops at the first error.
pub(crate) async fn cancel(args: &JobsArgs) -> CommandResult {
    let session = args.at.remote.connect()?;
    for &id in &args.jobs {
        let job = session.client.cancel(&args.at.endpoint, id).await?;
        match session.output.format {
            OutputFormat::Table => {
                session
                    .output
                    .line(&format!("{id}  {}", session.output.styles.state(job.status.as_str())))?;
            }
            _ => follow::show_record(&session, &job)?,
        }
    }
    Ok(CommandExit::Success)
}

/// Queues jobs again that failed or timed out.
pub(crate) async fn retry(args: &JobsArgs) -> CommandResult {
    let session = args.at.remote.connect()?;
    for &id in &args.jobs {
        let job = session.client.retry(&args.at.endpoint, id).await?;
        match session.output.format {
            OutputFormat::Table => session.output.line(&format!("{id}  {}", job.status))?,
            _ => follow::show_record(&session, &job)?,
        }
    }
    Ok(CommandExit::Success)
}

/// Cancels all queued jobs.
pub(crate) async fn purge(args: &PurgeArgs) -> CommandResult {
    let session = args.at.remote.connect()?;
    let waiting = session.client.health(&args.at.endpoint).await?.jobs.in_queue;
    confirm(args.yes, &format!("cancel the {} queued in `{}`?", count(waiting, "job"), args.at.endpoint))?;
    let purged = session.client.purge(&args.at.endpoint).await?;
    match session.output.format {
        OutputFormat::Table => {
            let cancelled = count(purged.removed, "job");
            session.output.line(&format!("{cancelled} cancelled; running ones continue"))?;
        }
        _ => session.output.line(&format!("{{\"removed\":{}}}", purged.removed))?,
    }
    Ok(CommandExit::Success)
}
