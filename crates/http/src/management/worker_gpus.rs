//! The GPUs of a worker, as their driver says how busy and full they are.

use longshore_engine::{FleetStatus, PooledGpu};
use longshore_model::WorkerId;
use serde_json::{Value, json};

use crate::HttpState;
use crate::openapi::schema::{array_of, count, object, text};

const BYTES_PER_MIB: u64 = 1_048_576;

/// The GPUs of the workers of one endpoint.
pub(super) struct WorkerGpus(Vec<PooledGpu>);

impl WorkerGpus {
    /// Reads the GPUs, if a worker of the endpoint has any.
    pub(super) fn of(state: &HttpState, fleet: &FleetStatus) -> Self {
        let has_any = fleet.workers.iter().any(|worker| !worker.placement.gpus.is_empty());
        Self(if has_any { state.engine().gpus().gpus } else { Vec::new() })
    }

    /// No GPUs.
    pub(super) fn none() -> Self {
        Self(Vec::new())
    }

    /// The GPUs that the worker holds; `None` without any.
    pub(super) fn view(&self, worker: &WorkerId) -> Option<Value> {
        let held =
            self.0.iter().filter(|gpu| gpu.holder.as_ref().is_some_and(|(holder, _)| holder == worker));
        let gpus: Vec<_> = held.map(view).collect();
        (!gpus.is_empty()).then(|| json!(gpus))
    }
}

fn view(PooledGpu { gpu, fault, reading, .. }: &PooledGpu) -> Value {
    let reading = reading.as_ref();
    json!({
        "id": gpu.device,
        "typeId": gpu.type_id,
        "useRatio": reading.and_then(|it| it.use_percent).map(|percent| f64::from(percent) / 100.0),
        "memoryUsedBytes": reading.and_then(|it| it.memory_used_mib).map(|mib| mib * BYTES_PER_MIB),
        "memoryBytes": (gpu.memory_mib > 0).then_some(gpu.memory_mib * BYTES_PER_MIB),
        "temperatureC": reading.and_then(|it| it.temperature_c),
        "fault": fault,
    })
}

/// The schema of [`WorkerGpus::view`].
pub(super) fn schema() -> Value {
    let or_null = |mut schema: Value| {
        schema["nullable"] = json!(true);
        schema
    };
    let members = [
        ("id", text()),
        ("typeId", text()),
        ("useRatio", or_null(json!({ "type": "number", "minimum": 0, "maximum": 1 }))),
        ("memoryUsedBytes", or_null(count())),
        ("memoryBytes", or_null(count())),
        ("temperatureC", or_null(json!({ "type": "integer" }))),
        ("fault", or_null(text())),
    ];
    let mut schema = array_of(&object(&members, &members.clone().map(|(name, _)| name)));
    schema["description"] = json!("the GPUs that it holds, as their driver said at most 60 s ago");
    schema
}
