//! PostgreSQL: one insert per job, batches taken with SKIP LOCKED, one update per result; each is a commit.

use std::io;
use std::net::TcpStream;
use std::rc::Rc;
use std::time::Duration;

use super::{Peer, SLOTS};
use crate::load::{Protocol, Role, Tally, Target, Worker};
use crate::pg_wire::{self, Prepared};
use crate::postgres_server::{PostgresServer, USER};
use crate::scenarios::ScenarioContext;

const TABLE: &str = "DROP TABLE IF EXISTS job; CREATE TABLE job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
     state smallint NOT NULL DEFAULT 0, input text NOT NULL, output text, \
     created_at timestamptz NOT NULL DEFAULT now(), taken_at timestamptz, finished_at timestamptz); \
     CREATE INDEX job_waiting ON job (id) WHERE state = 0";
const SUBMIT: Prepared =
    Prepared { name: "submit", query: "INSERT INTO job (input) VALUES ($1) RETURNING id" };
const TAKE: Prepared = Prepared {
    name: "take",
    query: "UPDATE job SET state = 1, taken_at = now() WHERE id IN (SELECT id FROM job WHERE state = 0 \
            ORDER BY id LIMIT $1::text::int FOR UPDATE SKIP LOCKED) RETURNING id",
};
const DONE: Prepared = Prepared {
    name: "done",
    query: "UPDATE job SET state = 2, output = $2, finished_at = now() WHERE id = $1::text::bigint",
};

pub(super) struct Postgres {
    server: Rc<PostgresServer>,
}

impl Postgres {
    /// Makes an empty queue on a server that runs.
    pub(super) fn on(server: Rc<PostgresServer>) -> Result<Self, String> {
        server.ask(TABLE).map_err(|error| format!("cannot make the table: {error}"))?;
        Ok(Self { server })
    }
}

impl Peer for Postgres {
    const NAME: &'static str = "postgresql";

    fn start(ground: &ScenarioContext) -> Result<Self, String> {
        Self::on(Rc::new(PostgresServer::start(&ground.data, ground.cores)?))
    }

    fn dial(&self) -> Target {
        Target::new(self.server.address(), pg_wire::reply).greeting(prepare)
    }

    fn submit(&self, body: &[u8]) -> Vec<u8> {
        SUBMIT.execute(&[body])
    }

    fn consumer(&mut self, tally: Rc<Tally>) -> Result<Box<dyn Role>, String> {
        Ok(Box::new(Worker::speaking(Consumer(self.dial()), SLOTS, tally)))
    }
}

struct Consumer(Target);

impl Protocol for Consumer {
    fn dial(&self) -> Target {
        self.0
    }

    fn take(&self, free: usize, _busy: bool) -> Vec<u8> {
        TAKE.execute(&[free.to_string().as_bytes()])
    }

    fn jobs(&self, answer: &[u8]) -> Result<Vec<String>, String> {
        Ok(pg_wire::first_columns(answer))
    }

    fn done(&self, job: &str) -> Vec<u8> {
        DONE.execute(&[job.as_bytes(), br#"{"ok":true}"#])
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(2)
    }
}

fn prepare(stream: &mut TcpStream) -> io::Result<()> {
    pg_wire::start(stream, USER)?;
    pg_wire::ask(stream, &[SUBMIT.parse(), TAKE.parse(), DONE.parse(), pg_wire::sync()].concat())
}
