//! Which GPUs a worker gets, and who is next when there are none.
//!
//! A worker gets whole GPUs of one type, or none at all. Endpoints that find no place wait in a line: what comes
//! free is kept for whoever came first, so that a worker that needs four GPUs is not outrun for ever by those that
//! need one. What is kept in vain for a turn is let go for as long: what the first one waits for may be held by
//! workers that never end.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use longshore_model::{ComputeType, Endpoint, EndpointId, Gpu, Millis, WorkerId};

/// For so long GPUs are kept for the first in line. Every job that runs by the default timeout ends meanwhile.
pub const RESERVATION_MS: u64 = 600_000;

/// The GPUs that each worker of an endpoint needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuNeed {
    /// Types in order of preference; none means any.
    pub types: Vec<String>,
    /// How many.
    pub count: usize,
}

impl GpuNeed {
    /// None for an endpoint that needs no GPU.
    pub fn of(endpoint: &Endpoint) -> Option<Self> {
        let count = endpoint.gpu_count.max(1) as usize;
        (endpoint.compute_type == ComputeType::Gpu)
            .then(|| Self { types: endpoint.gpu_type_ids.clone(), count })
    }
}

/// Why a worker got no GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementError {
    /// This machine will never have them.
    NeverFits(String),
    /// They are taken, or kept for an endpoint that has waited for longer.
    InUse(String),
}

impl PlacementError {
    /// The reason in words.
    pub fn reason(&self) -> &str {
        match self {
            Self::NeverFits(reason) | Self::InUse(reason) => reason,
        }
    }
}

/// The GPUs of a machine, who has them and who waits for them.
#[derive(Clone, Debug, Default)]
pub struct GpuInventory {
    gpus: Vec<Gpu>,
    /// Device → its worker.
    held: BTreeMap<String, WorkerId>,
    line: VecDeque<PlacementWaiter>,
}

/// An endpoint in line.
#[derive(Clone, Debug)]
struct PlacementWaiter {
    endpoint: EndpointId,
    need: GpuNeed,
    /// Before this time nothing is kept for it: it had its turn.
    kept_for_from: Millis,
    /// When it became the first in line.
    turn_began: Option<Millis>,
}

impl GpuInventory {
    /// A machine whose GPUs are all free.
    pub fn new(gpus: Vec<Gpu>) -> Self {
        Self { gpus, ..Self::default() }
    }

    /// Gives the worker GPUs of the first type that the endpoint likes and that has enough free ones. Where there
    /// is none yet, the endpoint waits in line until it is asked for again or [leaves](Self::leave).
    pub fn place(
        &mut self,
        now: Millis,
        endpoint: EndpointId,
        worker: &WorkerId,
        need: &GpuNeed,
    ) -> Result<Vec<Gpu>, PlacementError> {
        let types = self.types_for(need);
        if types.is_empty() {
            self.leave(&endpoint);
            return Err(PlacementError::NeverFits(self.describe_lack(need)));
        }
        self.update_reservations(now);
        let at = self.line.iter().position(|waiting| waiting.endpoint == endpoint);
        let before = at.unwrap_or(self.line.len());
        let found = types.iter().find_map(|type_id| self.enough_free(now, type_id, need.count, before));
        let Some(found) = found else {
            match at {
                Some(at) => self.line[at].need = need.clone(),
                None => self.line.push_back(PlacementWaiter {
                    endpoint,
                    need: need.clone(),
                    kept_for_from: now,
                    turn_began: None,
                }),
            }
            self.update_reservations(now);
            return Err(PlacementError::InUse(self.describe_wait(need, before)));
        };
        self.leave(&endpoint);
        self.hold(worker, &found);
        Ok(found)
    }

    /// The worker has these GPUs already: it was started by an earlier server.
    pub fn hold(&mut self, worker: &WorkerId, gpus: &[Gpu]) {
        self.held.extend(gpus.iter().map(|gpu| (gpu.device.clone(), worker.clone())));
    }

    /// The worker is gone. Answers whether it had GPUs.
    pub fn free(&mut self, worker: &WorkerId) -> bool {
        let before = self.held.len();
        self.held.retain(|_, holder| holder != worker);
        self.held.len() < before
    }

    /// The endpoint does not wait for GPUs any more.
    pub fn leave(&mut self, endpoint: &EndpointId) {
        self.line.retain(|waiting| waiting.endpoint != *endpoint);
    }

    /// Who waits, the first in line first.
    pub fn waiters(&self) -> impl Iterator<Item = &EndpointId> {
        self.line.iter().map(|waiting| &waiting.endpoint)
    }

    /// Every GPU, with whether it is free.
    pub fn gpus(&self) -> impl Iterator<Item = (&Gpu, bool)> {
        self.gpus.iter().map(|gpu| (gpu, !self.held.contains_key(&gpu.device)))
    }

    /// The first in line goes to its end when its turn has passed, and the next one's turn begins.
    fn update_reservations(&mut self, now: Millis) {
        let has_passed = |first: &PlacementWaiter| {
            first.turn_began.is_some_and(|began| now.since(began) >= RESERVATION_MS)
        };
        if self.line.front().is_some_and(has_passed) {
            self.line.rotate_left(1);
            if let Some(last) = self.line.back_mut() {
                last.turn_began = None;
                last.kept_for_from = now + RESERVATION_MS;
            }
        }
        if let Some(first) = self.line.front_mut().filter(|first| first.kept_for_from <= now) {
            first.turn_began.get_or_insert(now);
        }
    }

    /// The types that the machine has enough of, in the endpoint's order.
    fn types_for(&self, need: &GpuNeed) -> Vec<String> {
        let mut types: Vec<String> = Vec::new();
        let any = [String::new()];
        let wishes = if need.types.is_empty() { &any[..] } else { &need.types[..] };
        for wish in wishes {
            for gpu in self.gpus.iter().filter(|gpu| wish.is_empty() || suits(gpu, wish)) {
                let has_enough =
                    || self.gpus.iter().filter(|other| other.type_id == gpu.type_id).count() >= need.count;
                if !types.contains(&gpu.type_id) && has_enough() {
                    types.push(gpu.type_id.clone());
                }
            }
        }
        types
    }

    /// Free GPUs of this type, beside those that are kept for the first `before` in line.
    fn enough_free(&self, now: Millis, type_id: &str, count: usize, before: usize) -> Option<Vec<Gpu>> {
        let wants_it =
            |waiting: &&PlacementWaiter| self.types_for(&waiting.need).iter().any(|t| t == type_id);
        let kept_for = self.line.iter().take(before).filter(|waiting| waiting.kept_for_from <= now);
        let kept: usize = kept_for.filter(wants_it).map(|waiting| waiting.need.count).sum();
        let free = self.gpus().filter(|(gpu, is_free)| *is_free && gpu.type_id == type_id);
        let mut free: Vec<Gpu> = free.map(|(gpu, _)| gpu.clone()).collect();
        (free.len() >= count + kept).then(|| {
            free.truncate(count);
            free
        })
    }

    fn describe_lack(&self, need: &GpuNeed) -> String {
        let mut stock: BTreeMap<&str, usize> = BTreeMap::new();
        for gpu in &self.gpus {
            *stock.entry(&gpu.type_id).or_default() += 1;
        }
        let stock: Vec<String> = stock.into_iter().map(|(type_id, n)| format!("{n} x {type_id}")).collect();
        format!("a worker needs {}; this machine has {}", wanted(need), stock.join(", "))
    }

    fn describe_wait(&self, need: &GpuNeed, before: usize) -> String {
        let types = self.types_for(need);
        let of_those = |gpu: &Gpu| types.contains(&gpu.type_id);
        let total = self.gpus.iter().filter(|gpu| of_those(gpu)).count();
        let free = self.gpus().filter(|(gpu, is_free)| *is_free && of_those(gpu)).count();
        let line = match before {
            0 => String::new(),
            1 => ", and 1 endpoint is before this one in line".to_string(),
            n => format!(", and {n} endpoints are before this one in line"),
        };
        format!("a worker needs {}; {free} of {total} are free{line}", wanted(need))
    }
}

fn wanted(need: &GpuNeed) -> String {
    let types = if need.types.is_empty() { "any type".to_string() } else { need.types.join(" or ") };
    format!(
        "{} of {types}",
        if need.count == 1 { "a GPU".to_string() } else { format!("{} GPUs", need.count) }
    )
}

/// Whether the GPU is of the wished type, or of a pool like `AMPERE_16` or `ADA_80_PRO`: such names come from
/// clients of another stock, and what counts in them is the memory.
fn suits(gpu: &Gpu, wish: &str) -> bool {
    gpu.type_id == wish || pool_gb(wish).is_some_and(|gb| gpu.memory_mib * MIB >= gb * GB_LEAST)
}

const MIB: u64 = 1 << 20;
/// GPUs are sold with some more or less than the round number of gigabytes on the box.
const GB_LEAST: u64 = 950_000_000;

/// The memory of a pool's GPUs.
fn pool_gb(name: &str) -> Option<u64> {
    let mut parts = name.split('_');
    let family = parts.next()?;
    let gb = parts.next()?.parse().ok()?;
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase());
    (is_word(family) && parts.all(is_word)).then_some(gb)
}

#[cfg(test)]
mod tests;
