//! Celery behind `FastAPI`, and its worker with 16 threads.

use std::net::SocketAddr;
use std::process::Command;
use std::rc::Rc;

use super::finished::{Finished, wait_first};
use super::redis::Redis;
use super::{Peer, SLOTS, installed, source};
use crate::http::Request;
use crate::load::{Role, Tally, Target, ask};
use crate::program::{CpuPlacement, Program, free_address};
use crate::scenarios::{SMALL_BYTES, ScenarioContext, job_body};

pub(super) struct Celery {
    // Dropped in this order, so that users of Redis end before Redis.
    worker: Option<Program>,
    _server: Program,
    redis: Redis,
    address: SocketAddr,
    ground: ScenarioContext,
}

impl Peer for Celery {
    const NAME: &'static str = "celery";

    fn start(ground: &ScenarioContext) -> Result<Self, String> {
        let (redis, address) = (Redis::start(ground)?, free_address()?);
        let mut command = python(ground, &redis)?;
        command.args(["-m", "uvicorn", "app:api", "--log-level", "warning", "--no-access-log"]);
        command.args(["--port", &address.port().to_string()]);
        let mut server = Program::start(&mut command, CpuPlacement::Measured, ground.cores)?;
        server.wait_listening(address)?;
        ask(address, &Request::post("/run").with_body(&job_body(SMALL_BYTES)))?;
        Ok(Self { worker: None, _server: server, redis, address, ground: ground.clone() })
    }

    fn dial(&self) -> Target {
        self.address.into()
    }

    fn submit(&self, body: &[u8]) -> Vec<u8> {
        Request::post("/run").with_body(body)
    }

    fn consumer(&mut self, tally: Rc<Tally>) -> Result<Box<dyn Role>, String> {
        let mut command = python(&self.ground, &self.redis)?;
        command.args(["-m", "celery", "-A", "app", "worker", "--pool", "threads", "--loglevel", "ERROR"]);
        command.args(["--concurrency", &SLOTS.to_string()]);
        self.worker = Some(Program::start(&mut command, CpuPlacement::Beside, self.ground.cores)?);
        wait_first(self.address)?;
        Ok(Box::new(Finished::new(self.address, tally)))
    }
}

fn python(ground: &ScenarioContext, redis: &Redis) -> Result<Command, String> {
    let mut command = Command::new(installed(ground)?.join("venv/bin/python"));
    command.current_dir(source("celery")).env("REDIS_URL", redis.url()).env("PYTHONDONTWRITEBYTECODE", "1");
    // Celery refuses to run as root, in a container too.
    command.env("C_FORCE_ROOT", "1");
    Ok(command)
}
