//! `longshore doctor`: checks this computer for problems that would affect a server.

mod machine;
mod storage;

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::exit::{CommandExit, CommandResult, cannot};
use crate::output::{FormatArgs, Output};
use crate::profile::{self, Profiles};
use crate::remote::variable;
use crate::table::Column;

/// Arguments of `longshore doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The settings file of `serve`
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The data directory of `serve`
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The address of `serve`
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// What a server with these settings would use. Made by the server's crate, which reads the settings.
#[derive(Clone, Debug)]
pub struct ServerPlan {
    /// Address that the server listens on, such as `127.0.0.1:8080`.
    pub listen: String,
    /// The data directory of the server.
    pub data_dir: PathBuf,
    /// Whether a key for stored secrets is set, or why the configured key cannot be used.
    pub secrets_key: Result<bool, String>,
    /// The cgroup in which workers get their own cgroups: the configured one, or one delegated to this program.
    /// `None` if there is neither. An error if the configured one cannot be used.
    pub worker_cgroup: Result<Option<PathBuf>, String>,
    /// What was found about the database; empty without one.
    pub database: Vec<(CheckStatus, String)>,
    /// What was found about the object storage; `None` without one.
    pub objects: Option<(CheckStatus, String)>,
}

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckStatus {
    /// A server works with it, and nothing needs to be done.
    Ok,
    /// A server works, with a consequence that the text names.
    Warn,
    /// A server does not start.
    Fail,
}

/// One check with its result.
#[derive(Clone, Debug)]
struct Finding {
    subject: &'static str,
    verdict: CheckStatus,
    text: String,
}

impl Finding {
    fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, verdict: CheckStatus::Ok, text: text.into() }
    }

    fn warn(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, verdict: CheckStatus::Warn, text: text.into() }
    }

    fn fail(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, verdict: CheckStatus::Fail, text: text.into() }
    }
}

/// Runs all checks. Fails if a problem would keep a server from working.
pub(crate) async fn doctor(args: &DoctorArgs, plan: Result<ServerPlan, String>) -> CommandResult {
    let mut findings = vec![match &plan {
        Ok(plan) => {
            Finding::ok("config", format!("listens on {}, data in {}", plan.listen, plan.data_dir.display()))
        }
        Err(error) => Finding::fail("config", error.clone()),
    }];
    findings.push(profiles());
    if let Ok(plan) = &plan {
        findings.extend(storage::disk(&plan.data_dir));
        findings.push(storage::port(&plan.listen).await);
        let database = plan.database.iter().cloned();
        findings.extend(database.map(|(verdict, text)| Finding { subject: "database", verdict, text }));
        let objects = plan.objects.iter().cloned();
        findings.extend(objects.map(|(verdict, text)| Finding { subject: "objects", verdict, text }));
        findings.push(secrets(&plan.secrets_key));
        findings.push(cgroup(&plan.worker_cgroup));
    }
    findings.push(machine::clock().await);
    findings.push(machine::open_files());
    findings.push(machine::gpus().await);
    findings.extend(machine::python().await);
    show(Output::new(args.format.output), &findings)
}

fn secrets(key: &Result<bool, String>) -> Finding {
    match key {
        Ok(true) => Finding::ok("secrets", "stored secrets are encrypted with a key"),
        Ok(false) => {
            Finding::warn("secrets", "stored unencrypted: create a key with `longshore secret new-key FILE`")
        }
        Err(error) => Finding::fail("secrets", error.clone()),
    }
}

fn cgroup(worker_cgroup: &Result<Option<PathBuf>, String>) -> Finding {
    match worker_cgroup {
        Ok(Some(path)) => Finding::ok("cgroup", format!("workers get their own in {}", path.display())),
        // A service manager may start the server in a delegated cgroup of its own.
        Ok(None) => Finding::warn(
            "cgroup",
            "none for workers of a server that is started as this program was: set Delegate=yes and \
             DelegateSubgroup=server in its systemd unit, or `worker_cgroup`",
        ),
        Err(error) => Finding::fail("cgroup", error.clone()),
    }
}

fn profiles() -> Finding {
    use std::os::unix::fs::PermissionsExt as _;

    let path = match profile::path(variable) {
        Ok(path) => path,
        Err(failure) => return Finding::warn("profiles", failure.message),
    };
    let names = match Profiles::load(&path) {
        Ok(profiles) => profiles.names().join(", "),
        Err(failure) => return Finding::fail("profiles", failure.message),
    };
    let open = std::fs::metadata(&path).is_ok_and(|facts| facts.permissions().mode() & 0o077 != 0);
    match (names.is_empty(), open) {
        (true, _) => Finding::ok("profiles", "none yet; `longshore login` creates one"),
        (false, true) => {
            Finding::warn("profiles", format!("others can read {0}: chmod 600 {0}", path.display()))
        }
        (false, false) => Finding::ok("profiles", names),
    }
}

fn show(output: Output, findings: &[Finding]) -> CommandResult {
    let word = |verdict| match verdict {
        CheckStatus::Ok => "ok",
        CheckStatus::Warn => "warn",
        CheckStatus::Fail => "fail",
    };
    let rows: Result<Vec<_>, _> = findings
        .iter()
        .map(|one| {
            to_raw_value(&json!({"status": word(one.verdict), "subject": one.subject, "text": one.text}))
        })
        .collect();
    let rows = rows.map_err(|error| cannot("write a row", error))?;
    let columns =
        [Column::new("STATUS", "status"), Column::new("WHAT", "subject"), Column::new("FOUND", "text")];
    output.records(&columns, &rows)?;
    let failed = findings.iter().any(|one| one.verdict == CheckStatus::Fail);
    Ok(if failed { CommandExit::Failure } else { CommandExit::Success })
}
