//! The tests that need a real GPU. No other task runs them on one, because the Python of the others has no such packages.

use std::process::{Command, Stdio};

use crate::test::{build, succeed};

/// Why the tests of workers on a GPU do not run here; `None` if the driver lists one.
pub fn reason_not_to_run() -> Option<String> {
    let listed = Command::new("nvidia-smi").arg("-L").stderr(Stdio::null()).output();
    let is_listed = |text: &[u8]| String::from_utf8_lossy(text).contains("GPU-");
    match listed {
        Err(_) => Some("there is no nvidia-smi".to_owned()),
        Ok(output) if !is_listed(&output.stdout) => Some("nvidia-smi lists none".to_owned()),
        Ok(_) => None,
    }
}

/// Builds the program and runs the tests with this interpreter.
pub fn run(python: &str) -> Result<(), String> {
    if let Some(reason) = reason_not_to_run() {
        return Err(format!("NOT RUN: the tests of workers on a real GPU: {reason}"));
    }
    let binary = build()?;
    let mut pytest = Command::new(python);
    // The fixtures of the other tests need packages that these do not.
    pytest.args(["-m", "pytest", "-q", "--noconftest", "e2e/test_real_gpu.py"]).env("LONGSHORE_BIN", binary);
    succeed(&mut pytest)
}
