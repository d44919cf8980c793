//! The test server of the official worker SDK. It runs a job within its request and stores nothing; its `/run` runs
//! no job.

use std::process::Command;

use super::{CONNECTIONS, installed, source};
use crate::http::Request;
use crate::load::{ClosedLoop, EventLoop};
use crate::program::{CpuPlacement, Program, free_address};
use crate::readings::Readings;
use crate::scenarios::{SMALL_BYTES, ScenarioContext, job_body};

pub(super) fn run(ground: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    for (path, name) in [("/run", "submit_per_s"), ("/runsync", "jobs_per_s")] {
        let address = free_address()?;
        let mut command = Command::new(installed(ground)?.join("venv/bin/python"));
        command.arg(source("local-api/handler.py")).current_dir(&ground.data);
        command.args(["--rp_serve_api", "--rp_api_host", "127.0.0.1", "--rp_log_level", "ERROR"]);
        command.args(["--rp_api_port", &address.port().to_string()]);
        let mut server = Program::start(&mut command, CpuPlacement::Measured, ground.cores)?;
        server.wait_listening(address)?;
        let request = Request::post(path).with_body(&job_body(SMALL_BYTES));
        let mut clients = ClosedLoop::new(address, request, CONNECTIONS, ground.span());
        EventLoop::run(&mut [&mut clients])?;
        readings.put(format!("sdk-local-api.{name}"), clients.per_s());
    }
    Ok(())
}
