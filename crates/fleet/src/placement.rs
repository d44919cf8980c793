//! The GPUs that each worker gets, and the endpoints that wait for GPUs.
//!
//! A worker gets GPUs of one type, or none. Where the operator has divided GPUs into shares, it gets shares of different GPUs.
//! Endpoints without enough free GPUs wait in order of arrival. Free GPUs
//! are reserved for the first waiter, so that a worker with four GPUs starts although other endpoints need one. A
//! reservation ends after [`RESERVATION_MS`], because the first waiter may wait for workers that never exit. Then that
//! waiter goes to the end, and gets no reservation for the same time.

mod line;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use longshore_model::{ComputeType, Endpoint, EndpointId, Gpu, Millis, WorkerId};

pub use line::InLine;

/// How long free GPUs are reserved for the first waiter, in ms: the default execution timeout, so a running job can end.
pub const RESERVATION_MS: u64 = 600_000;

/// The GPUs that each worker of an endpoint needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuNeed {
    /// GPU types in order of preference; empty means any.
    pub types: Vec<String>,
    /// The number of GPUs, at least 1.
    pub count: usize,
}

impl GpuNeed {
    /// The need as text: `4 × H100`, `1 × L4 or A40`, `2 × any GPU`.
    pub fn describe(&self) -> String {
        let types = if self.types.is_empty() { "any GPU".to_string() } else { self.types.join(" or ") };
        format!("{} × {types}", self.count)
    }

    /// The need of an endpoint's workers; `None` if they need no GPU.
    pub fn of(endpoint: &Endpoint) -> Option<Self> {
        let count = endpoint.gpu_count.max(1) as usize;
        (endpoint.compute_type == ComputeType::Gpu)
            .then(|| Self { types: endpoint.gpu_type_ids.clone(), count })
    }
}

/// Why a worker got no GPUs. Each variant has the reason as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementError {
    /// The computer has too few GPUs of every accepted type. The endpoint does not wait.
    NeverFits(String),
    /// Too few GPUs are free, or they are reserved for another endpoint. The endpoint waits.
    InUse(String),
}

impl PlacementError {
    /// The reason as text.
    pub fn reason(&self) -> &str {
        match self {
            Self::NeverFits(reason) | Self::InUse(reason) => reason,
        }
    }
}

/// Why the next worker of an endpoint gets no GPUs at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// The computer has too few GPUs of every accepted type, sick ones included.
    Impossible,
    /// It has enough, and too few of them can be used now. The reason of one that cannot.
    Sick(String),
    /// Too few GPUs are free.
    InUse {
        /// The number of free GPUs of the accepted types.
        free: usize,
        /// The number of GPUs of the accepted types.
        total: usize,
        /// The workers that hold these GPUs.
        holders: Vec<WorkerId>,
        /// The endpoints that wait before this one, the first one first.
        before: Vec<EndpointId>,
    },
    /// Enough GPUs are free, and kept for an endpoint that waits longer.
    Kept {
        /// The endpoint that the GPUs are kept for.
        keeper: EndpointId,
        /// How many GPUs each of its workers needs.
        keeper_needs: usize,
        /// When its reservation ends; `None` while it has none.
        until: Option<Millis>,
    },
}

/// The GPUs of a computer, the worker that holds each one, and the endpoints that wait. No GPU has two workers.
#[derive(Clone, Debug, Default)]
pub struct GpuInventory {
    gpus: Vec<Gpu>,
    /// The worker of each held device. May contain devices that are not in `gpus`, held by adopted workers.
    held: BTreeMap<String, WorkerId>,
    /// The devices that no worker gets, each with the reason.
    sick: BTreeMap<String, String>,
    /// Why the driver does not answer, so that no worker gets any of them; `None` if it answers.
    unreadable: Option<String>,
    waiters: VecDeque<PlacementWaiter>,
}

/// An endpoint that waits for GPUs.
#[derive(Clone, Debug)]
struct PlacementWaiter {
    endpoint: EndpointId,
    need: GpuNeed,
    /// The first time at which GPUs may be reserved for it: later than now after a reservation that has ended.
    reservable_from: Millis,
    /// When its reservation began; `None` without a reservation.
    reserved_since: Option<Millis>,
}

impl GpuInventory {
    /// The inventory of a computer whose GPUs are all free. Each device is in `gpus` once.
    pub fn new(gpus: Vec<Gpu>) -> Self {
        debug_assert!(
            gpus.iter().map(|gpu| &gpu.device).collect::<BTreeSet<_>>().len() == gpus.len(),
            "two GPUs have one device"
        );
        Self { gpus, ..Self::default() }
    }

    /// Notes what the driver lists now, with the fault of each GPU that has one. GPUs that are new can be given to workers.
    /// Those that are missing are sick until they are listed again. Returns the workers that hold a GPU that has become sick,
    /// each with the reason.
    pub fn update(&mut self, listed: &[(Gpu, Option<String>)]) -> Vec<(WorkerId, String)> {
        let mut sick = BTreeMap::new();
        for (gpu, fault) in listed {
            if let Some(fault) = fault {
                sick.insert(gpu.device.clone(), fault.clone());
            }
            if self.gpus.iter().all(|known| known.device != gpu.device) {
                self.gpus.push(gpu.clone());
            }
        }
        for gpu in &self.gpus {
            if listed.iter().all(|(other, _)| other.device != gpu.device) {
                sick.insert(gpu.device.clone(), "the driver no longer lists it".to_string());
            }
        }
        self.unreadable = None;
        let before = core::mem::replace(&mut self.sick, sick);
        let new = self.sick.iter().filter(|(device, _)| !before.contains_key(*device));
        let holders = new.filter_map(|(device, fault)| {
            let type_id = &self.gpus.iter().find(|gpu| gpu.device == *device)?.type_id;
            Some((self.held.get(device)?.clone(), format!("its GPU {device} ({type_id}) is sick: {fault}")))
        });
        holders.collect()
    }

    /// Notes that the driver does not answer: until the next [`update`](Self::update) no worker gets a GPU, and workers that
    /// have one keep it.
    pub fn set_unreadable(&mut self, reason: String) {
        self.unreadable = Some(reason);
    }

    /// Why no worker gets this device; `None` if workers can get it.
    pub fn fault(&self, device: &str) -> Option<&str> {
        self.sick.get(device).or(self.unreadable.as_ref()).map(String::as_str)
    }

    /// The GPUs that are not sick.
    fn healthy(&self) -> impl Iterator<Item = &Gpu> + Clone {
        self.gpus.iter().filter(|gpu| self.fault(&gpu.device).is_none())
    }

    /// Every GPU that is neither sick nor held by a worker.
    fn free_gpus(&self) -> impl Iterator<Item = &Gpu> {
        self.healthy().filter(|gpu| !self.held.contains_key(&gpu.device))
    }

    /// Gives the worker GPUs of the first accepted type with enough free ones, and ends the endpoint's wait.
    ///
    /// # Errors
    ///
    /// [`PlacementError::InUse`]: the endpoint waits until a later call succeeds or the endpoint [leaves](Self::leave).
    /// [`PlacementError::NeverFits`]: the endpoint does not wait.
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
        let at = self.waiters.iter().position(|waiting| waiting.endpoint == endpoint);
        let before = at.unwrap_or(self.waiters.len());
        let found = types.iter().find_map(|type_id| self.enough_free(now, type_id, need.count, before));
        let Some(found) = found else {
            match at {
                Some(at) => self.waiters[at].need = need.clone(),
                None => self.waiters.push_back(PlacementWaiter {
                    endpoint,
                    need: need.clone(),
                    reservable_from: now,
                    reserved_since: None,
                }),
            }
            self.update_reservations(now);
            return Err(PlacementError::InUse(self.describe_wait(need, before)));
        };
        debug_assert!(found.len() == need.count, "a worker gets as many GPUs as it needs");
        debug_assert!(
            found.iter().all(|gpu| !self.held.contains_key(&gpu.device)),
            "a worker gets GPUs that are free"
        );
        self.leave(&endpoint);
        self.hold(worker, &found);
        Ok(found)
    }

    /// Notes the GPUs of a worker that an earlier server started.
    pub fn hold(&mut self, worker: &WorkerId, gpus: &[Gpu]) {
        self.held.extend(gpus.iter().map(|gpu| (gpu.device.clone(), worker.clone())));
    }

    /// Frees the GPUs of a worker that has exited. Returns whether it had any.
    pub fn free(&mut self, worker: &WorkerId) -> bool {
        let before = self.held.len();
        self.held.retain(|_, holder| holder != worker);
        self.held.len() < before
    }

    /// Ends the endpoint's wait for GPUs, if it waits.
    pub fn leave(&mut self, endpoint: &EndpointId) {
        self.waiters.retain(|waiting| waiting.endpoint != *endpoint);
    }

    /// The endpoints that wait, in the order of their turns.
    pub fn waiters(&self) -> impl Iterator<Item = &EndpointId> {
        self.waiters.iter().map(|waiting| &waiting.endpoint)
    }

    /// Every GPU, and the worker that holds it.
    pub fn gpus(&self) -> impl Iterator<Item = (&Gpu, Option<&WorkerId>)> {
        self.gpus.iter().map(|gpu| (gpu, self.held.get(&gpu.device)))
    }

    /// Why the next worker of this endpoint gets no GPUs; `None` if it would get some, or the computer has no GPU.
    pub fn shortage(&self, now: Millis, endpoint: EndpointId, need: &GpuNeed) -> Option<Shortage> {
        if self.gpus.is_empty() {
            return None;
        }
        let types = self.types_for(need);
        if types.is_empty() {
            return Some(self.fault_for(need).map_or(Shortage::Impossible, Shortage::Sick));
        }
        let at = self.waiters.iter().position(|waiting| waiting.endpoint == endpoint);
        let before = at.unwrap_or(self.waiters.len());
        if types.iter().any(|type_id| self.enough_free(now, type_id, need.count, before).is_some()) {
            return None;
        }
        let of_those = |gpu: &Gpu| types.contains(&gpu.type_id);
        let free = || self.free_gpus().filter(|gpu| of_those(gpu));
        let of_one_type =
            types.iter().map(|type_id| free().filter(|gpu| gpu.type_id == *type_id).count()).max();
        let keeper = self.waiters.iter().take(before).find(|waiting| waiting.reservable_from <= now);
        if let (Some(keeper), true) = (keeper, of_one_type.unwrap_or_default() >= need.count) {
            return Some(Shortage::Kept {
                keeper: keeper.endpoint,
                keeper_needs: keeper.need.count,
                until: keeper.reserved_since.map(|since| since + RESERVATION_MS),
            });
        }
        let total = self.healthy().filter(|gpu| of_those(gpu));
        let holders = total.clone().filter_map(|gpu| self.held.get(&gpu.device)).collect::<BTreeSet<_>>();
        Some(Shortage::InUse {
            free: free().count(),
            total: total.count(),
            holders: holders.into_iter().cloned().collect(),
            before: self.waiters.iter().take(before).map(|waiting| waiting.endpoint).collect(),
        })
    }

    /// The number of GPUs of each type, as text: `2 × H100 in 4 shares, 2 × L4 (1 sick)`.
    pub fn stock(&self) -> String {
        let mut stock: BTreeMap<&str, (BTreeSet<&str>, usize, usize)> = BTreeMap::new();
        for gpu in &self.gpus {
            let (cards, shares, sick) = stock.entry(&gpu.type_id).or_default();
            cards.insert(gpu.card());
            *shares += 1;
            *sick += usize::from(self.fault(&gpu.device).is_some());
        }
        let shown = |(type_id, (cards, shares, sick)): (&str, (BTreeSet<&str>, usize, usize))| {
            let divided = if shares > cards.len() { format!(" in {shares} shares") } else { String::new() };
            let sick = if sick > 0 { format!(" ({sick} sick)") } else { String::new() };
            format!("{} × {type_id}{divided}{sick}", cards.len())
        };
        let stock: Vec<String> = stock.into_iter().map(shown).collect();
        stock.join(", ")
    }

    /// Moves the first waiter to the end when its reservation has ended, and begins the reservation of the next one.
    fn update_reservations(&mut self, now: Millis) {
        let has_passed = |first: &PlacementWaiter| {
            first.reserved_since.is_some_and(|began| now.since(began) >= RESERVATION_MS)
        };
        if self.waiters.front().is_some_and(has_passed) {
            self.waiters.rotate_left(1);
            if let Some(last) = self.waiters.back_mut() {
                last.reserved_since = None;
                last.reservable_from = now + RESERVATION_MS;
            }
        }
        if let Some(first) = self.waiters.front_mut().filter(|first| first.reservable_from <= now) {
            first.reserved_since.get_or_insert(now);
        }
    }

    /// The accepted types of which the computer has enough GPUs that are not sick, in the endpoint's order.
    fn types_for(&self, need: &GpuNeed) -> Vec<String> {
        types_among(need, &self.healthy().collect::<Vec<_>>())
    }

    /// Why a GPU cannot be used with which there would be enough; `None` if also all would be too few.
    fn fault_for(&self, need: &GpuNeed) -> Option<String> {
        let types = types_among(need, &self.gpus.iter().collect::<Vec<_>>());
        let fault = self
            .gpus
            .iter()
            .filter(|gpu| types.contains(&gpu.type_id))
            .find_map(|gpu| self.fault(&gpu.device));
        fault.map(String::from)
    }

    /// `count` free GPUs of this type, if enough others remain for the first `before` waiters.
    fn enough_free(&self, now: Millis, type_id: &str, count: usize, before: usize) -> Option<Vec<Gpu>> {
        let wants_it =
            |waiting: &&PlacementWaiter| self.types_for(&waiting.need).iter().any(|t| t == type_id);
        let kept_for = self.waiters.iter().take(before).filter(|waiting| waiting.reservable_from <= now);
        let kept: usize = kept_for.filter(wants_it).map(|waiting| waiting.need.count).sum();
        let free = self.free_gpus().filter(|gpu| gpu.type_id == type_id);
        let mut free: Vec<&Gpu> = free.collect();
        let are_left = free.len() >= count + kept;
        let mut cards = BTreeSet::new();
        free.retain(|gpu| cards.insert(gpu.card()));
        (are_left && free.len() >= count).then(|| free.into_iter().take(count).cloned().collect())
    }

    fn describe_lack(&self, need: &GpuNeed) -> String {
        let stock = self.stock().replace('×', "x");
        format!("a worker needs {}; this machine has {stock}", wanted(need))
    }

    fn describe_wait(&self, need: &GpuNeed, before: usize) -> String {
        let types = self.types_for(need);
        let of_those = |gpu: &Gpu| types.contains(&gpu.type_id);
        let total = self.healthy().filter(|gpu| of_those(gpu)).count();
        let free = self.free_gpus().filter(|gpu| of_those(gpu)).count();
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

/// Whether the GPU is of the type `wish`, or fits a pool such as `AMPERE_16` or `ADA_80_PRO`. Clients of another service
/// send the names of its pools; of these, only the memory is compared.
fn suits(gpu: &Gpu, wish: &str) -> bool {
    gpu.type_id == wish || pool_gb(wish).is_some_and(|gb| gpu.memory_mib * MIB >= gb * BYTES_PER_NOMINAL_GB)
}

const MIB: u64 = 1 << 20;
/// Bytes that count as one GB of a pool's name: GPUs have up to 5 % less memory than their nominal size.
const BYTES_PER_NOMINAL_GB: u64 = 950_000_000;

/// The memory of a pool's GPUs, in GB; `None` if the name is no pool.
fn pool_gb(name: &str) -> Option<u64> {
    let mut parts = name.split('_');
    let family = parts.next()?;
    let gb = parts.next()?.parse().ok()?;
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase());
    (is_word(family) && parts.all(is_word)).then_some(gb)
}

/// The accepted types of which enough of these GPUs are there, in the endpoint's order.
fn types_among(need: &GpuNeed, gpus: &[&Gpu]) -> Vec<String> {
    let mut types: Vec<String> = Vec::new();
    let any = [String::new()];
    let wishes = if need.types.is_empty() { &any[..] } else { &need.types[..] };
    for wish in wishes {
        for gpu in gpus.iter().filter(|gpu| wish.is_empty() || suits(gpu, wish)) {
            let has_enough = || {
                let same = gpus.iter().filter(|other| other.type_id == gpu.type_id);
                same.map(|gpu| gpu.card()).collect::<BTreeSet<_>>().len() >= need.count
            };
            if !types.contains(&gpu.type_id) && has_enough() {
                types.push(gpu.type_id.clone());
            }
        }
    }
    types
}

#[cfg(test)]
mod tests;
