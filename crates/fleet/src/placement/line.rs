//! What has to come free before each endpoint in the line gets its GPUs, and which workers have them.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use longshore_model::{EndpointId, Gpu, WorkerId};

use super::{GpuInventory, GpuNeed, PlacementWaiter};

/// An endpoint in the line, and what its next worker waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InLine {
    /// The endpoint that waits.
    pub endpoint: EndpointId,
    /// The GPUs that each of its workers needs.
    pub need: GpuNeed,
    /// The accepted type of which the fewest GPUs are missing.
    pub type_id: String,
    /// The number of free GPUs of that type.
    pub free: usize,
    /// How many more GPUs of that type have to come free: for the endpoints before this one, and for its own worker. 0 if it
    /// gets its GPUs at the next attempt.
    pub missing: usize,
    /// The workers that hold GPUs of that type: of these, some have to end.
    pub holders: Vec<WorkerId>,
}

impl GpuInventory {
    /// The endpoints that wait, in the order of their turns. Those whose GPUs the computer no longer has are left out.
    pub fn line(&self) -> Vec<InLine> {
        let waiters = self.waiters.iter().enumerate();
        waiters.filter_map(|(before, waiting)| self.in_line(before, waiting)).collect()
    }

    fn in_line(&self, before: usize, waiting: &PlacementWaiter) -> Option<InLine> {
        let types = self.types_for(&waiting.need);
        let of_types = types.into_iter().map(|type_id| {
            let free = cards(self.free_gpus(), &type_id);
            let first = self.waiters.iter().take(before);
            let first = first.filter(|other| self.types_for(&other.need).contains(&type_id));
            let kept: usize = first.map(|other| other.need.count).sum();
            ((kept + waiting.need.count).saturating_sub(free), free, type_id)
        });
        let (missing, free, type_id) = of_types.min_by_key(|(missing, ..)| *missing)?;
        let of_type = self.healthy().filter(|gpu| gpu.type_id == type_id);
        let holders: BTreeSet<_> = of_type.filter_map(|gpu| self.held.get(&gpu.device)).collect();
        let holders = if missing > 0 { holders.into_iter().cloned().collect() } else { Vec::new() };
        Some(InLine {
            endpoint: waiting.endpoint,
            need: waiting.need.clone(),
            type_id,
            free,
            missing,
            holders,
        })
    }
}

/// The number of GPUs of this type, of whose shares one counts.
fn cards<'a>(gpus: impl Iterator<Item = &'a Gpu>, type_id: &str) -> usize {
    gpus.filter(|gpu| gpu.type_id == type_id).map(Gpu::card).collect::<BTreeSet<_>>().len()
}
