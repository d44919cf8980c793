//! Runs a hot path a number of times and exits. `cargo xtask instructions` runs this program under valgrind with two
//! numbers: the difference is the cost of the path, without startup and teardown.
//!
//! usage: longshore-hot-paths PATH TIMES

#![expect(clippy::print_stderr, reason = "a command-line tool reports usage errors on stderr")]

mod counting;
mod envelope;
mod queue;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let [path, times] = args[..] else {
        eprintln!("usage: longshore-hot-paths PATH TIMES");
        return ExitCode::FAILURE;
    };
    let Ok(times @ 1..=queue::TIMES_MAX) = times.parse::<u64>() else {
        eprintln!("`{times}` is not a number from 1 to {}", queue::TIMES_MAX);
        return ExitCode::FAILURE;
    };
    match path {
        "submit" => queue::submit(times),
        "take" => queue::take(times),
        "done" => queue::done(times),
        "counting" => counting::whole_job(times),
        "envelope" => envelope::parse(&envelope::small(), times),
        "envelope-64k" => envelope::parse(&envelope::large(), times),
        other => {
            eprintln!("there is no path `{other}`");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
