//! The shim as a program of its own; the server contains it as a hidden subcommand.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1) else {
        let _ = writeln!(std::io::stderr(), "usage: longshore-worker-shim SCRATCH_FOLDER");
        return ExitCode::from(2);
    };
    longshore_launch::shim::main(Path::new(&dir))
}
