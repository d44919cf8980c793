//! The NVIDIA GPUs of this computer, as the driver's own tool lists them.
//!
//! The tool, in place of the driver's library, comes with every driver, can be killed when it hangs, cannot crash the
//! server, and works for a statically linked program.

use std::process::Stdio;
use std::time::Duration;

use longshore_model::Gpu;
use tokio::process::Command;
use tokio::time::timeout;

/// How long the tool may take. Without persistence mode, a driver with many GPUs needs several seconds.
const PATIENCE: Duration = Duration::from_secs(20);
const TOOL: &str = "nvidia-smi";
const QUESTION: [&str; 2] =
    ["--query-gpu=uuid,name,memory.total,mig.mode.current", "--format=csv,noheader,nounits"];

/// The GPUs that can be assigned to workers; empty without a driver.
///
/// # Errors
///
/// There is a driver, but the tool failed, took too long, or printed something else. The text says which.
pub async fn nvidia_gpus() -> Result<Vec<Gpu>, String> {
    ask(TOOL).await
}

async fn ask(tool: &str) -> Result<Vec<Gpu>, String> {
    let mut command = Command::new(tool);
    command.args(QUESTION).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match timeout(PATIENCE, command.output()).await {
        Err(_) => Err(format!("{tool} did not answer within {} s", PATIENCE.as_secs())),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Ok(Err(error)) => Err(format!("{tool} cannot be run: {error}")),
        Ok(Ok(output)) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).lines().filter_map(read).collect()
        }
        // The tool prints its errors on standard output.
        Ok(Ok(output)) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let first: String = text.lines().next().unwrap_or_default().chars().take(200).collect();
            Err(format!("{tool} failed ({}): {first}", output.status))
        }
    }
}

/// Parses a line: UUID, name, memory in MiB, MIG mode. A GPU that is divided by MIG is left out: it has no whole device.
fn read(line: &str) -> Option<Result<Gpu, String>> {
    let mut fields = line.split(',').map(str::trim);
    let gpu = (|| {
        let device = fields.next().filter(|uuid| uuid.starts_with("GPU-"))?.to_owned();
        let type_id = fields.next().filter(|name| !name.is_empty())?.to_owned();
        // Boards that share the computer's memory report none.
        let memory_mib = fields.next()?.parse().unwrap_or(0);
        Some(Gpu { device, type_id, memory_mib })
    })();
    match (gpu, fields.next()) {
        _ if line.trim().is_empty() => None,
        (Some(_), Some("Enabled")) => None,
        (Some(gpu), _) => Some(Ok(gpu)),
        (None, _) => Some(Err(format!("{TOOL} answered with a line that names no GPU: {line:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use longshore_hostile::{cases, mutated};
    use proptest::prelude::*;

    use super::*;

    const LINE: &str = "GPU-8a2b5a1c-0000-1111-2222-333344445555, NVIDIA H200, 143771, Disabled";

    async fn asked(script: &str) -> Result<Vec<Gpu>, String> {
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
        let script = format!(
            "echo '{LINE}'; echo 'GPU-2, NVIDIA L4, 23034, [N/A]'; echo 'GPU-3, NVIDIA A100, 9, Enabled'"
        );
        let gpus = asked(&script).await.unwrap();
        let h200 = Gpu {
            device: "GPU-8a2b5a1c-0000-1111-2222-333344445555".into(),
            type_id: "NVIDIA H200".into(),
            memory_mib: 143_771,
        };
        assert_eq!(gpus[0], h200);
        assert_eq!((gpus.len(), gpus[1].type_id.as_str()), (2, "NVIDIA L4"), "a sliced one is left out");
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
        fn any_line_is_survived(line in mutated(Just(LINE), &[b",", b"GPU-", b"Enabled"])) {
            let _ = read(&String::from_utf8_lossy(&line));
        }
    }
}
