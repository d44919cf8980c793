//! `BullMQ` behind fastify, and its worker with 16 concurrent jobs.

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

pub(super) struct BullMq {
    // Dropped in this order, so that users of Redis end before Redis.
    worker: Option<Program>,
    _server: Program,
    redis: Redis,
    address: SocketAddr,
    ground: ScenarioContext,
}

impl Peer for BullMq {
    const NAME: &'static str = "bullmq";

    fn start(ground: &ScenarioContext) -> Result<Self, String> {
        let (redis, address) = (Redis::start(ground)?, free_address()?);
        let mut command = node(ground, "bullmq/server.js", &redis)?;
        command.env("PORT", address.port().to_string());
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
        let mut command = node(&self.ground, "bullmq/worker.js", &self.redis)?;
        command.env("SLOTS", SLOTS.to_string());
        self.worker = Some(Program::start(&mut command, CpuPlacement::Beside, self.ground.cores)?);
        wait_first(self.address)?;
        Ok(Box::new(Finished::new(self.address, tally)))
    }
}

fn node(ground: &ScenarioContext, script: &str, redis: &Redis) -> Result<Command, String> {
    let mut command = Command::new("node");
    command.arg(source(script)).env("NODE_PATH", installed(ground)?.join("node_modules"));
    command.env("NODE_ENV", "production").env("REDIS_URL", redis.url());
    Ok(command)
}
