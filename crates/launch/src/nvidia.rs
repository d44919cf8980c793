//! The NVIDIA GPUs of this computer, as the driver's own tool lists them.
//!
//! The tool, in place of the driver's library, comes with every driver, can be killed when it hangs, cannot crash the
//! server, and works for a statically linked program.

use std::process::Stdio;
use std::time::Duration;

use longshore_model::Gpu;
use tokio::process::Command;
use tokio::time::timeout;

use crate::gpu_reading::GpuReading;

/// How long the tool may take. Without persistence mode, a driver with many GPUs needs several seconds.
const PATIENCE: Duration = Duration::from_secs(20);
const TOOL: &str = "nvidia-smi";
const FORMAT: &str = "--format=csv,noheader,nounits";
/// What is asked about each GPU, and what older tools know of it.
const QUESTION: &str = "--query-gpu=uuid,name,memory.total,mig.mode.current,pci.bus_id,driver_version,temperature.gpu,\
                        ecc.errors.uncorrected.volatile.total,compute_cap,utilization.gpu,memory.used";
const OLD_QUESTION: &str = "--query-gpu=uuid,name,memory.total,mig.mode.current";
/// What the tool prints in place of a value of a GPU that does not work.
const FAULTS: [&str; 4] = ["GPU is lost", "requires reset", "Unknown Error", "ERR!"];
const MIB_PER_GIB: u64 = 1_024;

/// The GPUs that can be assigned to workers, and how they are; empty without a driver. The parts of a GPU that is divided by
/// MIG are listed in its place.
///
/// # Errors
///
/// There is a driver, but the tool failed, took too long, or printed something else. The text says which.
pub(crate) async fn nvidia_gpus() -> Result<Vec<GpuReading>, String> {
    ask(TOOL).await
}

async fn ask(tool: &str) -> Result<Vec<GpuReading>, String> {
    let listed = match run(tool, &[QUESTION, FORMAT]).await {
        Err(error) if error.contains("not a valid field") => run(tool, &[OLD_QUESTION, FORMAT]).await?,
        listed => listed?,
    };
    let rows: Vec<Row> = listed.lines().filter_map(row).collect::<Result<_, _>>()?;
    if rows.iter().all(|row| !row.is_divided) {
        return Ok(rows.into_iter().map(|row| row.reading).collect());
    }
    let parts = parts(&run(tool, &["-L"]).await?);
    let devices = rows.into_iter().flat_map(|Row { reading, is_divided }| {
        let own = parts.iter().filter(|part| is_divided && part.of == reading.gpu.device);
        let own: Vec<GpuReading> = own.map(|part| part.reading(&reading)).collect();
        if is_divided { own } else { vec![reading] }
    });
    Ok(devices.collect())
}

/// What the tool prints; empty without a tool. A tool that fails has its output used if that lists a GPU: the others are
/// lost.
async fn run(tool: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(tool);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match timeout(PATIENCE, command.output()).await {
        Err(_) => Err(format!("{tool} did not answer within {} s", PATIENCE.as_secs())),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Ok(Err(error)) => Err(format!("{tool} cannot be run: {error}")),
        Ok(Ok(output)) => {
            // The tool prints its errors on standard output.
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.success() {
                return Ok(text);
            }
            let rows: Vec<&str> = text.lines().filter(|line| line.trim().starts_with("GPU-")).collect();
            if !rows.is_empty() {
                return Ok(rows.join("\n"));
            }
            let first: String = text.lines().next().unwrap_or_default().chars().take(200).collect();
            Err(format!("{tool} failed ({}): {first}", output.status))
        }
    }
}

/// A line about one GPU.
struct Row {
    reading: GpuReading,
    /// Whether MIG divides the GPU: then it is no device for workers, and its parts are.
    is_divided: bool,
}

/// Parses a line: the values of the question, in its order.
fn row(line: &str) -> Option<Result<Row, String>> {
    if line.trim().is_empty() {
        return None;
    }
    let mut fields = line.split(',').map(str::trim);
    let mut row = (|| {
        let device = fields.next().filter(|uuid| uuid.starts_with("GPU-"))?.to_owned();
        let type_id = fields.next().filter(|name| !name.is_empty())?.to_owned();
        // Boards that share the computer's memory report none.
        let memory_mib = fields.next()?.parse().unwrap_or(0);
        Some(GpuReading::of(Gpu { device, type_id, memory_mib }))
    })();
    let is_divided = fields.next() == Some("Enabled");
    if let Some(reading) = &mut row {
        // A value that the GPU does not have is a word in brackets.
        let mut value = || fields.next().filter(|value| !value.starts_with('[')).map(str::to_owned);
        reading.bus_id = value();
        reading.driver_version = value();
        reading.temperature_c = value().and_then(|value| value.parse().ok());
        reading.ecc_errors = value().and_then(|value| value.parse().ok());
        reading.compute_capability = value();
        reading.use_percent = value().and_then(|value| value.parse().ok());
        reading.memory_used_mib = value().and_then(|value| value.parse().ok());
        let told = FAULTS.iter().find(|fault| line.contains(*fault));
        reading.fault = match (told, reading.ecc_errors) {
            (Some(fault), _) => Some(format!("the driver says \"{fault}\"")),
            (None, Some(errors)) if errors > 0 => {
                Some(format!("uncorrectable errors of its memory: {errors}"))
            }
            _ => None,
        };
    }
    Some(match row {
        Some(reading) => Ok(Row { reading, is_divided }),
        None => Err(format!("{TOOL} answered with a line that names no GPU: {line:?}")),
    })
}

/// A part of a GPU.
struct MigPart {
    /// The device of the GPU.
    of: String,
    device: String,
    /// The size of the part, such as `1g.18gb`.
    profile: String,
}

impl MigPart {
    fn reading(&self, whole: &GpuReading) -> GpuReading {
        let memory_gb =
            self.profile.rsplit('.').next().and_then(|size| size.split("gb").next()?.parse().ok());
        let gpu = Gpu {
            device: self.device.clone(),
            type_id: format!("{} MIG {}", whole.gpu.type_id, self.profile),
            memory_mib: memory_gb.unwrap_or(0_u64).saturating_mul(MIB_PER_GIB),
        };
        GpuReading { gpu, use_percent: None, memory_used_mib: None, ..whole.clone() }
    }
}

/// Parses a list of all devices: a line for each GPU, and an indented one for each of its parts.
fn parts(list: &str) -> Vec<MigPart> {
    let uuid = |line: &str| Some(line.split_once("(UUID: ")?.1.split(')').next()?.trim().to_owned());
    let (mut of, mut parts) = (String::new(), Vec::new());
    for line in list.lines() {
        let Some(device) = uuid(line) else { continue };
        match line.trim_start().strip_prefix("MIG ") {
            Some(rest) if device.starts_with("MIG-") => {
                let profile = rest.split_whitespace().next().unwrap_or_default().to_owned();
                parts.push(MigPart { of: of.clone(), device, profile });
            }
            _ => of = device,
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use longshore_hostile::{cases, mutated};
    use proptest::prelude::*;

    use super::*;

    const LINE: &str = "GPU-8a2b5a1c-0000-1111-2222-333344445555, NVIDIA H200, 143771, Disabled, 00000000:3B:00.0, \
                        570.86.15, 41, 0, 9.0, 87, 71884";

    async fn asked(script: &str) -> Result<Vec<GpuReading>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(TOOL);
        // Another process writes the file: children of other tests would inherit an open file of this one, and a file that is
        // open for writing cannot be executed.
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" >"$0" && chmod +x "$0""#;
        let written = Command::new("sh").args(["-c", write]).arg(&path).arg(script).status().await;
        assert!(written.unwrap().success());
        ask(path.to_str().unwrap()).await
    }

    #[tokio::test]
    async fn what_the_tool_lists_is_there() {
        let gpus =
            asked(&format!("echo '{LINE}'; echo 'GPU-2, NVIDIA L4, 23034, [N/A], [N/A], 1, 30, [N/A], 8.9'"))
                .await;
        let gpus = gpus.unwrap();
        let h200 = Gpu {
            device: "GPU-8a2b5a1c-0000-1111-2222-333344445555".into(),
            type_id: "NVIDIA H200".into(),
            memory_mib: 143_771,
        };
        let text = |text: &str| Some(text.to_owned());
        let expected = GpuReading {
            bus_id: text("00000000:3B:00.0"),
            compute_capability: text("9.0"),
            driver_version: text("570.86.15"),
            temperature_c: Some(41),
            use_percent: Some(87),
            memory_used_mib: Some(71_884),
            ecc_errors: Some(0),
            ..GpuReading::of(h200)
        };
        assert_eq!(gpus[0], expected);
        assert_eq!((gpus[1].bus_id.clone(), gpus[1].ecc_errors, gpus[1].fault.clone()), (None, None, None));
    }

    #[tokio::test]
    async fn an_older_tool_is_asked_for_less() {
        let script = "case \"$1\" in *compute_cap*) echo 'Field \"compute_cap\" is not a valid field to query.'; exit 2;; esac
            echo 'GPU-1, Tesla K80, 11441, [N/A]'";
        let gpus = asked(script).await.unwrap();
        assert_eq!((gpus.len(), gpus[0].gpu.type_id.as_str()), (1, "Tesla K80"));
        assert_eq!((gpus[0].bus_id.clone(), gpus[0].fault.clone()), (None, None));
    }

    #[tokio::test]
    async fn the_parts_of_a_divided_gpu_are_devices() {
        let script = "if [ \"$1\" = -L ]; then
            echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'
            echo '  MIG 1g.18gb     Device  0: (UUID: MIG-a)'
            echo '  MIG 3g.71gb     Device  1: (UUID: MIG-b)'
            echo 'GPU 1: NVIDIA L4 (UUID: GPU-2)'
            else echo 'GPU-1, NVIDIA H200, 143771, Enabled, 0:1, 5, 40, 0, 9.0'; echo 'GPU-2, NVIDIA L4, 23034, [N/A], 0:2, 5, 40, 0, 8.9'; fi";
        let gpus = asked(script).await.unwrap();
        let shown: Vec<_> = gpus
            .iter()
            .map(|it| (it.gpu.device.as_str(), it.gpu.type_id.as_str(), it.gpu.memory_mib))
            .collect();
        let expected = [
            ("MIG-a", "NVIDIA H200 MIG 1g.18gb", 18_432),
            ("MIG-b", "NVIDIA H200 MIG 3g.71gb", 72_704),
            ("GPU-2", "NVIDIA L4", 23_034),
        ];
        assert_eq!(shown, expected);
        assert_eq!(gpus[0].bus_id.as_deref(), Some("0:1"));
    }

    #[tokio::test]
    async fn a_gpu_that_errs_has_a_fault_and_one_that_is_lost_is_missing() {
        let rows = "echo 'GPU-1, NVIDIA L4, 9, [N/A], 0:1, 5, 40, 3, 8.9'; echo 'GPU-2, NVIDIA L4, 9, [N/A], 0:2, 5, [GPU requires reset], 0, 8.9'";
        let gpus = asked(rows).await.unwrap();
        let faults: Vec<_> = gpus.iter().map(|it| it.fault.clone().unwrap_or_default()).collect();
        assert_eq!(faults, ["uncorrectable errors of its memory: 3", "the driver says \"requires reset\""]);
        let lost = format!(
            "echo '{LINE}'; echo 'Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.'; exit 15"
        );
        let gpus = asked(&lost).await.unwrap();
        assert_eq!((gpus.len(), gpus[0].fault.clone()), (1, None));
    }

    #[tokio::test]
    async fn a_machine_without_a_driver_has_none_and_one_with_a_broken_driver_says_so() {
        assert_eq!(ask("/no/such/tool").await.unwrap(), []);
        let error = asked("echo 'NVIDIA-SMI has failed'; exit 9").await.unwrap_err();
        assert!(error.ends_with("NVIDIA-SMI has failed"), "{error}");
        let error = asked("echo 'No devices were found'").await.unwrap_err();
        assert!(error.contains("names no GPU"), "{error}");
    }

    proptest! {
        #![proptest_config(cases(300))]

        #[test]
        fn any_line_is_survived(line in mutated(Just(LINE), &[b",", b"GPU-", b"Enabled", b"[", b"ERR!"])) {
            let _ = row(&String::from_utf8_lossy(&line));
        }

        #[test]
        fn any_list_is_survived(list in mutated(Just("GPU 0: x (UUID: GPU-1)\n  MIG 1g.5gb Device 0: (UUID: MIG-1)"), &[b"\n", b"(UUID: ", b"MIG "])) {
            let whole = GpuReading::of(Gpu { device: "GPU-1".into(), type_id: "x".into(), memory_mib: 1 });
            for part in parts(&String::from_utf8_lossy(&list)) {
                let _ = part.reading(&whole);
            }
        }
    }
}
