//! `longshore gpus`.

use clap::Args;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::exit::{CommandExit, CommandResult, cannot};
use crate::human::size_cell;
use crate::output::{cell, parsed};
use crate::remote::ServerArgs;
use crate::table::Column;

const COLUMNS: &[Column] = &[
    Column::new("GPU", "typeId"),
    Column::new("MEMORY", "memoryBytes").shown_as(size_cell),
    Column::new("USED", "memoryUsedBytes").shown_as(size_cell),
    Column::new("BUSY", "useRatio").shown_as(percent_cell),
    Column::new("STATE", "state"),
    Column::new("TEMP", "temperatureC").shown_as(celsius_cell),
    Column::new("WORKER", "worker"),
    Column::new("ENDPOINT", "endpoint"),
    Column::new("BUS", "busId"),
    Column::new("DEVICE", "id"),
    Column::new("FAULT", "fault"),
];

/// Arguments of `longshore gpus`.
#[derive(Debug, Args)]
pub struct GpusArgs {
    #[command(flatten)]
    remote: ServerArgs,
}

/// Lists the GPUs of all machines.
pub(crate) async fn gpus(args: &GpusArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let machines = session.client.machines().await?;
    let mut gpus = Vec::new();
    for machine in &machines {
        for gpu in parsed(machine)["gpus"].as_array().into_iter().flatten() {
            gpus.push(with_state(gpu.clone())?);
        }
    }
    session.output.records(COLUMNS, &gpus)?;
    Ok(CommandExit::Success)
}

/// Adds a word for what the GPU is: `sick`, `taken` or `free`.
fn with_state(mut gpu: Value) -> CommandResult<Box<RawValue>> {
    let state = match (gpu["fault"].is_null(), gpu["worker"].is_null()) {
        (false, _) => "sick",
        (true, false) => "taken",
        (true, true) => "free",
    };
    gpu["state"] = Value::from(state);
    to_raw_value(&gpu).map_err(|error| cannot("show a GPU", error))
}

fn percent_cell(value: &Value) -> String {
    value.as_f64().map_or_else(|| cell(value), |ratio| format!("{:.0} %", ratio * 100.0))
}

fn celsius_cell(value: &Value) -> String {
    value.as_i64().map_or_else(|| cell(value), |degrees| format!("{degrees} °C"))
}
