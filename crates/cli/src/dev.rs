//! `longshore dev`: runs the handler in a directory on a server in this process.
//!
//! Steps: read the directory, create the Python environment, start the server, deploy the directory as an endpoint,
//! run the sample job, and print how to call the endpoint. Then print worker logs, and deploy and run the sample
//! again when files change.

pub(crate) mod deploy;
pub(crate) mod dev_dir;
pub(crate) mod error;
pub(crate) mod forwarded;
mod install;
pub(crate) mod logs;
mod manifest_error;
mod port;
pub(crate) mod project;
pub(crate) mod python;
pub(crate) mod sample;
mod server_host;
mod session;
mod snippets;
mod watch;

use std::process::ExitCode;

pub use server_host::{HostFuture, RunningServer, ServerHost, ServerRequest, WorkerLog};

use longshore_client::Client;

use crate::DevArgs;
use crate::profile::running::RunningProfile;
use crate::profile::{self, Profile};
use crate::remote::variable;
use crate::screen::Screen;
use crate::stop::StopRequest;
use dev_dir::DevDir;
use error::DevError;
use project::Project;
use session::DevSession;

/// Exit code after Ctrl-C: 128 + SIGINT, as shells expect.
const INTERRUPTED: u8 = 130;

/// Runs the command. Must be called inside a tokio runtime.
pub async fn dev(args: &DevArgs, host: &dyn ServerHost) -> ExitCode {
    let screen = Screen::new(args.no_color);
    let mut stop = match StopRequest::listen() {
        Ok(stop) => stop,
        Err(error) => return report(&screen, &DevError::new(format!("cannot listen for Ctrl-C: {error}"))),
    };
    let prepared = tokio::select! {
        prepared = prepare(args, host, &screen) => prepared,
        () = stop.requested() => return ExitCode::from(INTERRUPTED),
    };
    let mut session = match prepared {
        Ok(session) => session,
        Err(error) => return report(&screen, &error),
    };
    let outcome = tokio::select! {
        outcome = session.work() => outcome,
        () = stop.requested() => Ok(if args.once { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS }),
    };
    let code = outcome.unwrap_or_else(|error| report(&screen, &error));
    // Removed before the port is free for another server.
    drop(session.profile.take());
    tokio::select! {
        () = session.stop() => {}
        // A second signal ends the command without waiting for the shutdown.
        () = stop.requested() => {}
    }
    code
}

/// Prepares the environment and starts the server.
async fn prepare(args: &DevArgs, host: &dyn ServerHost, screen: &Screen) -> Result<DevSession, DevError> {
    let project = Project::to_run(&args.dir, &args.image)?;
    if args.once && project.sample().is_none() {
        return Err(DevError::new(format!(
            "--once runs test_input.json, which is missing in {}; create it, for example:",
            project.dir.display()
        ))
        .with_lines([r#"{"input": {"prompt": "hi"}}"#.to_owned()]));
    }
    screen.line("");
    screen.line(&format!(
        "  {} {}",
        screen.bold("longshore dev"),
        screen.dim(&project.dir.display().to_string())
    ));
    screen.line("");
    let home = DevDir::open(&project.dir)?;
    // The port is bound before the long installation, so that an unavailable port fails immediately.
    let port = port::bind(args.port)?;
    let command = python::prepare(&project, &home, screen, &|_| {}).await?;
    let key = home.key(host)?;
    let base_url = format!("http://127.0.0.1:{}", port.number);
    let request = ServerRequest {
        listener: port.listener,
        data_dir: home.data_dir(),
        admin_key: key.clone(),
        is_repeated: !args.once,
    };
    let server = host.start(request).await.map_err(DevError::new)?;
    match port.instead_of {
        Some(taken) => screen.note(&format!("port {taken} is in use: serving on {}", screen.bold(&base_url))),
        None => screen.good(&format!("serving on {}", screen.bold(&base_url))),
    }
    let profile = if args.once { None } else { store_profile(port.number, &base_url, &key, screen) };
    Ok(DevSession {
        dir: args.dir.clone(),
        once: args.once,
        image: args.image.clone(),
        home,
        project,
        command,
        client: Client::new(&base_url, &key)?,
        key,
        profile,
        server,
        screen: screen.clone(),
    })
}

/// Stores the server's address and key for other commands of the user. Without `HOME` there is no place for them.
fn store_profile(port: u16, url: &str, key: &str, screen: &Screen) -> Option<RunningProfile> {
    let folder = profile::dev_folder(variable).ok()?;
    let stored = Profile { url: url.to_owned(), api_key: key.into(), ca_file: None };
    RunningProfile::store(&folder, port, &stored)
        .inspect_err(|error| {
            let folder = folder.display();
            screen.note(&format!("cannot write to {folder}: {error}; other commands need --url and a key"));
        })
        .ok()
}

/// Prints the error to the terminal.
pub(crate) fn report(screen: &Screen, error: &DevError) -> ExitCode {
    screen.bad(&error.message);
    for line in &error.lines {
        screen.line(&format!("      {line}"));
    }
    ExitCode::FAILURE
}
