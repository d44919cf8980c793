//! Celery behind `FastAPI`, and its worker with 16 threads.

use std::process::Command;
use std::rc::Rc;

use super::redis::Redis;
use super::web_queue::WebQueue;
use super::{Peer, SLOTS, installed, source};
use crate::http::Request;
use crate::load::{Role, Tally, Target};
use crate::program::free_address;
use crate::scenarios::ScenarioContext;

pub(super) struct Celery(WebQueue);

impl Peer for Celery {
    const NAME: &'static str = "celery";

    fn start(ground: &ScenarioContext) -> Result<Self, String> {
        let (redis, address) = (Redis::start(ground)?, free_address()?);
        let mut command = python(ground, &redis)?;
        command.args(["-m", "uvicorn", "app:api", "--log-level", "warning", "--no-access-log"]);
        command.args(["--port", &address.port().to_string()]);
        WebQueue::start(ground, redis, address, &mut command).map(Self)
    }

    fn dial(&self) -> Target {
        self.0.target()
    }

    fn submit(&self, body: &[u8]) -> Vec<u8> {
        Request::post("/run").with_body(body)
    }

    fn consumer(&mut self, tally: Rc<Tally>) -> Result<Box<dyn Role>, String> {
        let mut command = python(self.0.context(), self.0.redis())?;
        command.args(["-m", "celery", "-A", "app", "worker", "--pool", "threads", "--loglevel", "ERROR"]);
        command.args(["--concurrency", &SLOTS.to_string()]);
        self.0.consumer(&mut command, tally)
    }
}

fn python(ground: &ScenarioContext, redis: &Redis) -> Result<Command, String> {
    let mut command = Command::new(installed(ground)?.join("venv/bin/python"));
    command.current_dir(source("celery")).env("REDIS_URL", redis.url()).env("PYTHONDONTWRITEBYTECODE", "1");
    // Celery refuses to run as root, in a container too.
    command.env("C_FORCE_ROOT", "1");
    Ok(command)
}
