//! What the recorded program commits: a row of batches made from a seed, each of which changes several tables.

use longshore_disk_faults::Random;
use longshore_model::{Counters, Durability, EndpointNo, JobKey, JsonRowKind, Millis};
use longshore_store::{Batch, OutcomeRow, Payload, StreamRow, WebhookRow, Write};

use crate::rows::{api_key, attempt, chunk, endpoint, full_job, job, key, put, put_attempt, template};

/// The setting that says how many batches are in the store.
pub const COUNT: &str = "batches";

/// The jobs are of these endpoints, numbered from 1.
pub const ENDPOINTS: u64 = 2;
/// Jobs per endpoint, numbered from 1.
pub const JOBS: u64 = 12;

/// The batches of a seed.
pub struct Workload {
    pub seed: u64,
    pub batches: Vec<Batch>,
}

impl Workload {
    pub fn new(seed: u64, batches: usize) -> Self {
        let mut random = Random(seed);
        let batches = (1..=batches as u64).map(|number| batch(number, &mut random)).collect();
        Self { seed, batches }
    }
}

fn batch(number: u64, random: &mut Random) -> Batch {
    // The last before a pause are buffered: they have to be synced without help.
    let buffered = (number + 3) % 12 < 4 || random.below(4) == 0;
    let durability = if buffered { Durability::Buffered } else { Durability::Synced };
    let mut writes = vec![Write::PutSetting(COUNT.into(), number.to_string().into())];
    for _ in 0..=random.below(3) {
        change(number, random, &mut writes);
    }
    Batch { durability, writes, chain: None }
}

/// One of the things that happen to jobs.
fn change(number: u64, random: &mut Random, writes: &mut Vec<Write>) {
    let key = key(1 + random.below(ENDPOINTS) as u32, 1 + random.below(JOBS));
    match random.below(8) {
        0 | 1 => writes.extend([
            put(job(key.endpoint.0, key.seq)),
            Write::PutInput(key, payload(number, random)),
            Write::PutWebhook(WebhookRow { job: key, attempts: number as u32, due_at: Millis(number) }),
        ]),
        2 => writes.extend([
            put(full_job(key.endpoint.0, key.seq)),
            Write::PutOutcome(key, OutcomeRow { output: Some(payload(number, random)), error: None }),
            Write::DeleteWebhook(key),
        ]),
        3 => writes.extend([
            chunk(key, number, format!("chunk {number}")),
            Write::PutStream(
                key,
                StreamRow { next: number + 1, consumed: number / 2, ..StreamRow::default() },
            ),
        ]),
        4 => writes.push(Write::DeleteJob(key)),
        5 => writes.extend([
            put_attempt(key, attempt(number as u32)),
            Write::ClearOutcome(key),
            Write::DropChunks(key),
        ]),
        6 => {
            let counters = Counters { completed: number, reserved_seq: number * 100, ..Counters::default() };
            writes.push(Write::PutCounters(EndpointNo(1), counters));
        }
        _ => catalog(number, key, writes),
    }
}

fn catalog(number: u64, key: JobKey, writes: &mut Vec<Write>) {
    let no = number as u32;
    match key.seq % 3 {
        0 => writes.push(Write::PutEndpoint(Box::new(endpoint(no)))),
        1 => writes.push(Write::PutTemplate(Box::new(template(number.into())))),
        _ => writes.extend([
            Write::PutKey(Box::new(api_key(&format!("k{number}")))),
            Write::DeleteEndpoint(EndpointNo(no / 2)),
            Write::PutJsonRow(JsonRowKind::Usage, format!("u{}", number % 5), number.to_string().into()),
        ]),
    }
}

/// Small in most cases, sometimes of several pages.
fn payload(number: u64, random: &mut Random) -> Payload {
    let bytes = if random.below(5) == 0 { 9_000 } else { 300 };
    Payload::Inline(vec![number as u8; bytes + random.below(100) as usize].into())
}
