//! Consumed chunks: a stream read without an offset removes the chunks that it returns.

use super::Auditor;
use super::exchange::Exchange;
use super::job_view::history;
use super::operation::Operation;
use super::outages::SLACK_MS;
use super::promise::Promise;
use super::submit::hash_of;
use super::time_bounds::EventTime;
use super::wire::{Chunk, PostContent, brief};

/// A read that consumed chunks.
#[derive(Debug)]
pub(super) struct ConsumingRead {
    arrived: EventTime,
    answered: EventTime,
    /// Hashes of the chunks.
    hashes: Vec<u64>,
}

impl Auditor {
    /// A consuming read was answered. Chunks consumed before its arrival are not in it, unless they were posted
    /// again.
    pub(super) fn chunks_consumed(&mut self, exchange: &Exchange, chunks: &[Chunk<'_>]) {
        let (Operation::Stream { offset: None }, Some(no), Some(arrived)) =
            (exchange.operation, exchange.job, exchange.arrived)
        else {
            return;
        };
        let now = self.ledger.now;
        let Some(job) = self.model.get(no) else { return };
        let hashes: Vec<u64> = chunks.iter().map(|chunk| hash_of(chunk.output.get().as_bytes())).collect();
        // The consumed offset is stored after the response, so a server that dies then has not stored it.
        let is_kept = |read: &&ConsumingRead| {
            read.answered.seq < arrived.seq
                && self.is_outage_free(read.answered.ms.saturating_sub(SLACK_MS), read.answered.ms + SLACK_MS)
        };
        let earlier: Vec<&ConsumingRead> = job.consuming_reads.iter().filter(is_kept).collect();
        for (chunk, hash) in chunks.iter().zip(&hashes) {
            let here = hashes.iter().filter(|other| *other == hash).count();
            let shown = here + times_consumed(&earlier, *hash);
            let matches_chunk = |content: &PostContent| matches!(content, PostContent::Progress(posted) if *posted == chunk.output.get().as_bytes());
            let posted = job.chunks.iter().filter(|post| matches_chunk(&post.content)).count();
            let text = || {
                let chunk = brief(chunk.output.get().as_bytes());
                format!("{}: {chunk} was drained {shown} times, posted {posted}; {}", job.id, history(job))
            };
            self.ledger.check(Promise::ConsumedOnce, shown <= posted, text);
        }
        let Some(job) = self.model.get_mut(no).filter(|_| !hashes.is_empty()) else { return };
        job.consuming_reads.push(ConsumingRead { arrived, answered: now, hashes });
    }
}

/// How often this chunk was certainly consumed. Concurrent readers may get the same chunk.
fn times_consumed(reads: &[&ConsumingRead], hash: u64) -> usize {
    let (mut taken, mut last) = (0, None);
    // In the order of the responses.
    for read in reads {
        let times = read.hashes.iter().filter(|other| **other == hash).count();
        if times > 0 && last.is_none_or(|last: EventTime| last.seq < read.arrived.seq) {
            (taken, last) = (taken + times, Some(read.answered));
        }
    }
    taken
}
