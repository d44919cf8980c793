//! A queue behind a web server and in front of Redis, as a framework for background jobs is deployed.

use std::net::SocketAddr;
use std::process::Command;
use std::rc::Rc;

use super::finished::{Finished, wait_first};
use super::redis::Redis;
use crate::http::Request;
use crate::load::{Role, Tally, Target, ask};
use crate::program::{CpuPlacement, Program};
use crate::scenarios::{SMALL_BYTES, ScenarioContext, job_body};

/// A running web server with its Redis, and the worker once it is started.
pub(super) struct WebQueue {
    // Dropped in this order, so that users of Redis end before Redis.
    worker: Option<Program>,
    _server: Program,
    redis: Redis,
    address: SocketAddr,
    context: ScenarioContext,
}

impl WebQueue {
    /// Starts the web server, which `command` makes listen on `address`, and submits a first job.
    ///
    /// # Errors
    ///
    /// If the server does not start or rejects the job.
    pub(super) fn start(
        context: &ScenarioContext,
        redis: Redis,
        address: SocketAddr,
        command: &mut Command,
    ) -> Result<Self, String> {
        let mut server = Program::start(command, CpuPlacement::Measured, context.cores)?;
        server.wait_listening(address)?;
        ask(address, &Request::post("/run").with_body(&job_body(SMALL_BYTES)))?;
        Ok(Self { worker: None, _server: server, redis, address, context: context.clone() })
    }

    pub(super) fn target(&self) -> Target {
        self.address.into()
    }

    pub(super) fn redis(&self) -> &Redis {
        &self.redis
    }

    pub(super) fn context(&self) -> &ScenarioContext {
        &self.context
    }

    /// Starts the worker and waits for the end of the first job. Returns the role that counts the further ones.
    ///
    /// # Errors
    ///
    /// If the worker does not start or the first job does not end.
    pub(super) fn consumer(
        &mut self,
        command: &mut Command,
        tally: Rc<Tally>,
    ) -> Result<Box<dyn Role>, String> {
        self.worker = Some(Program::start(command, CpuPlacement::Beside, self.context.cores)?);
        wait_first(self.address)?;
        Ok(Box::new(Finished::new(self.address, tally)))
    }
}
