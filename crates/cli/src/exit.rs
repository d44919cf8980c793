//! How a command ends: an exit code for scripts, and after a failure a message for the user.

use std::io::Write as _;
use std::process::ExitCode;

use longshore_client::{ClientError, TlsProblem};

use crate::human::age;
use crate::output::{Styles, harmless};

/// Exit codes of commands; `longshore --help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CommandExit {
    Success = 0,
    Failure = 1,
    Usage = 2,
    JobFailed = 3,
    NotFound = 4,
    Unauthorized = 5,
    Unreachable = 6,
    TimedOut = 7,
    /// Ended by Ctrl-C: 128 + SIGINT, as shells expect.
    Interrupted = 130,
}

impl From<CommandExit> for ExitCode {
    fn from(exit: CommandExit) -> Self {
        Self::from(exit as u8)
    }
}

/// What failed, and what to do next.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CommandError {
    pub(crate) exit: CommandExit,
    pub(crate) message: String,
    /// Lines shown below the message, unchanged.
    pub(crate) lines: Vec<String>,
    pub(crate) next: Option<String>,
}

/// The result of a command: its exit code or an error.
pub(crate) type CommandResult<T = CommandExit> = Result<T, CommandError>;

impl CommandError {
    pub(crate) fn new(exit: CommandExit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), lines: Vec::new(), next: None }
    }

    /// An error in the command line (exit code 2).
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(CommandExit::Usage, message)
    }

    pub(crate) fn with_lines(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.lines.extend(lines);
        self
    }

    /// Adds the next step for the user.
    pub(crate) fn next(mut self, step: impl Into<String>) -> Self {
        self.next = Some(step.into());
        self
    }

    /// Prints the error to standard error and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let styles = Styles::of(&std::io::stderr());
        let mut out = std::io::stderr().lock();
        // A failed write to standard error cannot be reported.
        let _ = writeln!(out, "{} {}", styles.red("error:"), harmless(&self.message));
        for line in &self.lines {
            let _ = writeln!(out, "    {line}");
        }
        if let Some(next) = &self.next {
            let _ = writeln!(out, "{}  {next}", styles.bold("next:"));
        }
        self.exit.into()
    }
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        let message = match &error {
            ClientError::Refused { status: 401, .. } => {
                "the server does not accept the key for this".to_owned()
            }
            ClientError::Refused { message, .. } => message.clone(),
            ClientError::Tls { url, problem } => tls_message(url, problem),
            _ => error.to_string(),
        };
        match &error {
            ClientError::Refused { status: 401, .. } => {
                Self::new(CommandExit::Unauthorized, message).next(OTHER_KEY)
            }
            ClientError::Refused { status: 404, code, .. } => {
                let failure = Self::new(CommandExit::NotFound, message);
                match code.as_str() {
                    "endpoint_not_found" => failure.next("`longshore endpoint list` lists the endpoints"),
                    "job_not_found" => failure.next(
                        "finished jobs are deleted after their result TTL; `longshore requests ENDPOINT` lists the stored ones",
                    ),
                    "route_not_found" => failure.next(
                        "a server with a management address (`management_listen`) answers /v1 only there: name it with \
                         --url; else the server may be older than this program: upgrade it",
                    ),
                    _ => failure,
                }
            }
            ClientError::Refused { status: 503 | 507, code, .. } if code == "disk_full" => {
                Self::new(CommandExit::Failure, message).next(
                    "`longshore server` names the folder; free space on its disk, or delete jobs with `longshore purge` \
                     and endpoints with `longshore endpoint delete`",
                )
            }
            ClientError::Refused { status: 429 | 503, .. } => {
                Self::new(CommandExit::Failure, message).next("nothing was changed: try again in a moment")
            }
            ClientError::Unreachable { .. } => Self::new(CommandExit::Unreachable, message)
                .next("is the server running? start one with `longshore serve`, or name yours with --url"),
            ClientError::Tls { url, problem } => {
                Self::new(CommandExit::Unreachable, message).next(tls_step(url, problem))
            }
            ClientError::NotHttp { url } => {
                let origin = origin(url).replacen("http://", "https://", 1);
                Self::new(CommandExit::Unreachable, message)
                    .next(format!("if the server uses TLS, use {origin}"))
            }
            ClientError::TimedOut { .. } => Self::new(CommandExit::Unreachable, message)
                .next("the server or the way to it is stuck: `curl URL/healthz` tells which"),
            ClientError::Unexpected { .. } => Self::new(CommandExit::Failure, message)
                .next("check that --url names a Longshore server of the same version as this program"),
            ClientError::Unusable(_) => Self::usage(message),
            ClientError::Refused { .. } => Self::new(CommandExit::Failure, message),
        }
    }
}

/// The next step after a refused key.
const OTHER_KEY: &str =
    "`longshore login` stores another key; LONGSHORE_API_KEY names one for a single command";

/// Adds to a refusal of the key which scopes the request needs.
pub(crate) fn needing(scopes: &str, endpoint: &str) -> impl FnOnce(ClientError) -> CommandError {
    needing_at(scopes, &format!("`{endpoint}`"))
}

/// As [`needing`], for a request that is about no single endpoint.
pub(crate) fn needing_for_all(scopes: &str) -> impl FnOnce(ClientError) -> CommandError {
    needing_at(scopes, "all endpoints")
}

fn needing_at(scopes: &str, place: &str) -> impl FnOnce(ClientError) -> CommandError + use<> {
    let step = format!("this needs a key with {scopes} for {place}; {OTHER_KEY}");
    move |error| {
        let is_refused = matches!(error, ClientError::Refused { status: 401, .. });
        let error = CommandError::from(error);
        if is_refused { error.next(step) } else { error }
    }
}

/// Returns the message of a TLS connection that was not made. A time has its age, which shows a wrong clock.
fn tls_message(url: &str, problem: &TlsProblem) -> String {
    let reason = problem.to_string();
    let (TlsProblem::Expired { not_after: time } | TlsProblem::NotYetValid { not_before: time }) = problem
    else {
        return format!("cannot reach {url}: {reason}");
    };
    let age = time.parse().ok().map(|time| format!(" ({})", age(time)));
    format!("cannot reach {url}: {reason}{}", age.unwrap_or_default())
}

/// Returns the next step after a TLS connection was not made.
fn tls_step(url: &str, problem: &TlsProblem) -> String {
    match problem {
        TlsProblem::NotTls => format!("use {}", origin(url).replacen("https://", "http://", 1)),
        TlsProblem::UnknownIssuer => {
            "pass the certificate of its authority with --ca-file, or set SSL_CERT_FILE".into()
        }
        TlsProblem::AuthorityAsServer => {
            "create a server certificate with `longshore tls self-signed`, or sign one with this authority"
                .into()
        }
        TlsProblem::OtherName { expected, .. } => {
            format!(
                "use a name of the certificate, or create one with `longshore tls self-signed --name {expected}`"
            )
        }
        TlsProblem::Expired { .. } => {
            "renew the certificate on the server; check this computer's clock".into()
        }
        TlsProblem::NotYetValid { .. } => "check the clocks of this computer and of the server".into(),
        TlsProblem::Other(_) => format!("`curl -v {}/healthz` shows the handshake", origin(url)),
    }
}

/// Returns scheme, host and port of a URL.
fn origin(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let end = url[authority..].find(['/', '?']).map_or(url.len(), |at| authority + at);
    &url[..end]
}

/// An operation on this computer failed.
pub(crate) fn cannot(what: impl std::fmt::Display, cause: impl std::fmt::Display) -> CommandError {
    CommandError::new(CommandExit::Failure, format!("cannot {what}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_refusal_has_its_number_and_a_next_step() {
        let refused =
            |status, code: &str| ClientError::Refused { status, code: code.into(), message: "m".into() };
        for (error, exit) in [
            (refused(401, "unauthorized"), CommandExit::Unauthorized),
            (refused(404, "endpoint_not_found"), CommandExit::NotFound),
            (refused(404, "job_not_found"), CommandExit::NotFound),
            (refused(429, "rate_limited"), CommandExit::Failure),
            (refused(503, "disk_full"), CommandExit::Failure),
            (refused(507, "disk_full"), CommandExit::Failure),
            (ClientError::Unreachable { url: "u".into(), cause: "c".into() }, CommandExit::Unreachable),
            (ClientError::TimedOut { url: "u".into(), seconds: 1 }, CommandExit::Unreachable),
        ] {
            let failure = CommandError::from(error);
            assert_eq!(failure.exit, exit, "{failure}");
            assert!(failure.next.is_some(), "{failure}");
        }
        let tls =
            |problem| CommandError::from(ClientError::Tls { url: "https://h:1/v1/x?y".into(), problem });
        assert_eq!(tls(TlsProblem::NotTls).next.unwrap(), "use http://h:1");
        let failure = tls(TlsProblem::UnknownIssuer);
        assert_eq!(failure.exit, CommandExit::Unreachable);
        assert!(failure.next.unwrap().contains("--ca-file"));
        let failure = CommandError::from(ClientError::NotHttp { url: "http://h:1/v1".into() });
        assert_eq!(failure.next.unwrap(), "if the server uses TLS, use https://h:1");
        let expired = tls(TlsProblem::Expired { not_after: "2001-01-02T03:04:05Z".into() });
        let message =
            "cannot reach https://h:1/v1/x?y: the server's certificate expired at 2001-01-02T03:04:05Z";
        assert!(expired.message.starts_with(message) && expired.message.ends_with(" days ago)"), "{expired}");
        let failure = CommandError::from(refused(404, "route_not_found"));
        assert!(failure.next.unwrap().contains("management address"));
        let failure = needing("`jobs` or `read`", "gen")(refused(401, "unauthorized"));
        assert_eq!(failure.exit, CommandExit::Unauthorized);
        assert!(failure.next.unwrap().starts_with("this needs a key with `jobs` or `read` for `gen`; "));
        let failure = needing_for_all("`manage`")(refused(401, "unauthorized"));
        assert!(failure.next.unwrap().starts_with("this needs a key with `manage` for all endpoints; "));
        let failure = needing("`jobs`", "gen")(refused(404, "endpoint_not_found"));
        assert!(failure.next.unwrap().contains("endpoint list"));
        let failure = CommandError::from(refused(400, "bad_field"));
        assert_eq!((failure.exit, failure.message.as_str()), (CommandExit::Failure, "m"));
    }
}
