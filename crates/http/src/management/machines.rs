//! `/v1/machines`: the computers that run workers, their GPUs with the holders, and the endpoints that wait for GPUs. Today
//! there is one computer: the server's own.

mod line;

use axum::extract::State;
use axum::http::HeaderMap;
use longshore_engine::{DrainProgress, PooledGpu};
use longshore_model::{EndpointId, Provider};
use serde_json::{Value, json};

use super::JsonResult;
use super::access::may_read;
use crate::HttpState;
use crate::openapi::schema::{array_of, count, object, text};
use crate::openapi::{Group, Operation};

const BYTES_PER_KIB: u64 = 1_024;
const BYTES_PER_MIB: u64 = 1_048_576;

/// The id of the server's own computer.
pub(super) const LOCAL: &str = "local";

/// The operation on machines.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("ListMachines", "/v1/machines", list)
            .summary("the computers that run workers, and their GPUs")
            .about("`gpus` are those that workers can get; without sharing of GPUs there are none, and workers start without \
                    regard to them. One with a `fault` is given to no worker. The driver is asked about each \
                    every 60 s. `endpoints` are those of which workers run there. `waiting` are the endpoints whose \
                    next worker waits for GPUs, in the order of their turns; `line` says of each one how many GPUs of \
                    one type have to come free before its turn, its own included, and which workers hold them. External \
                    workers run elsewhere: they are not in this list.")
            .lists("Machine"),
    ];
    let or_null = |mut schema: Value| {
        schema["nullable"] = json!(true);
        schema
    };
    let gpu = object(
        &[
            ("id", text()),
            ("typeId", text()),
            ("memoryBytes", or_null(count())),
            ("endpoint", or_null(text())),
            ("worker", or_null(text())),
            ("fault", or_null(text())),
            ("busId", or_null(text())),
            ("computeCapability", or_null(text())),
            ("driverVersion", or_null(text())),
            ("temperatureC", or_null(json!({ "type": "integer" }))),
            ("useRatio", or_null(json!({ "type": "number", "minimum": 0, "maximum": 1 }))),
            ("memoryUsedBytes", or_null(count())),
            ("eccErrors", or_null(count())),
        ],
        &[
            "id",
            "typeId",
            "memoryBytes",
            "endpoint",
            "worker",
            "fault",
            "busId",
            "computeCapability",
            "driverVersion",
            "temperatureC",
            "useRatio",
            "memoryUsedBytes",
            "eccErrors",
        ],
    );
    let members = [
        ("id", text()),
        ("name", text()),
        ("providers", array_of(&text())),
        ("cpuCount", or_null(count())),
        ("memoryBytes", or_null(count())),
        ("memoryFreeBytes", or_null(count())),
        ("diskFreeBytes", or_null(count())),
        ("workers", count()),
        ("endpoints", array_of(&text())),
        ("gpus", array_of(&gpu)),
        ("waiting", array_of(&text())),
        ("line", array_of(&line::schema())),
    ];
    let names = members.clone().map(|(name, _)| name);
    let about = "The computers that run workers.";
    Group { name: "Machines", about, operations, schemas: vec![("Machine", object(&members, &names))] }
}

async fn list(State(state): State<HttpState>, headers: HeaderMap) -> JsonResult {
    may_read(&state, &headers)?;
    let gpus = state.engine().gpus();
    let DrainProgress { managed_workers, .. } = state.engine().drain_progress();
    let mut providers = state.engine().providers();
    providers.retain(|provider| *provider != Provider::External);
    let memory = Memory::parse(&read("/proc/meminfo"));
    let name = read("/proc/sys/kernel/hostname");
    Ok(json!([{
        "id": LOCAL,
        "name": if name.trim().is_empty() { "this computer" } else { name.trim() },
        "providers": providers,
        "cpuCount": std::thread::available_parallelism().ok(),
        "memoryBytes": memory.as_ref().map(|memory| memory.total),
        "memoryFreeBytes": memory.as_ref().map(|memory| memory.available),
        "diskFreeBytes": state.files().free_bytes(),
        "workers": managed_workers,
        "endpoints": with_workers(&state),
        "gpus": gpus.gpus.iter().map(gpu).collect::<Vec<_>>(),
        "waiting": gpus.waiting,
        "line": line::view(state.engine(), &gpus),
    }])
    .into())
}

/// The endpoints of which workers run here, or are being started or stopped.
fn with_workers(state: &HttpState) -> Vec<EndpointId> {
    let endpoints = state.engine().endpoints().into_iter();
    endpoints
        .filter(|endpoint| !endpoint.workers().fleet_status().workers.is_empty())
        .map(|endpoint| endpoint.id())
        .collect()
}

fn gpu(PooledGpu { gpu, holder, fault, reading }: &PooledGpu) -> Value {
    let (worker, endpoint) = holder.clone().unzip();
    let reading = reading.as_ref();
    json!({
        "id": gpu.device,
        "typeId": gpu.type_id,
        "memoryBytes": (gpu.memory_mib > 0).then_some(gpu.memory_mib * BYTES_PER_MIB),
        "endpoint": endpoint,
        "worker": worker,
        "fault": fault,
        "busId": reading.and_then(|it| it.bus_id.as_deref()),
        "computeCapability": reading.and_then(|it| it.compute_capability.as_deref()),
        "driverVersion": reading.and_then(|it| it.driver_version.as_deref()),
        "temperatureC": reading.and_then(|it| it.temperature_c),
        "useRatio": reading.and_then(|it| it.use_percent).map(|percent| f64::from(percent) / 100.0),
        "memoryUsedBytes": reading.and_then(|it| it.memory_used_mib).map(|mib| mib * BYTES_PER_MIB),
        "eccErrors": reading.and_then(|it| it.ecc_errors),
    })
}

/// The text of a file of the system; empty if it cannot be read, as on systems other than Linux.
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The computer's memory, in bytes.
#[derive(Debug, PartialEq, Eq)]
struct Memory {
    total: u64,
    /// What programs can get without swapping.
    available: u64,
}

impl Memory {
    /// Reads `/proc/meminfo`; `None` if a number is missing.
    fn parse(text: &str) -> Option<Self> {
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
            kib.checked_mul(BYTES_PER_KIB)
        };
        Some(Self { total: bytes("MemTotal")?, available: bytes("MemAvailable")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes_or_not_at_all() {
        let text = "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    8192 kB\n";
        assert_eq!(Memory::parse(text), Some(Memory { total: 16_777_216, available: 8_388_608 }));
        for odd in [
            "",
            "MemTotal: 1 kB\n",
            "MemTotal: x kB\nMemAvailable: 1 kB\n",
            "MemTotal: 1\nMemAvailable: 1 kB",
        ] {
            assert_eq!(Memory::parse(odd), None, "{odd}");
        }
    }
}
