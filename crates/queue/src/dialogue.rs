//! Tests of the queue as dialogues: a script of commands, and the expected results and effects.
//!
//! A script has one command per line, for example `take w1 x3 idle`; `script.rs` parses them. The time is the same for all
//! commands until `wait 31s` advances it, with a tick at each deadline of the queue. After every command the written rows
//! are compared with the queue's memory (`audit.rs`).

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes the expectations so")]

mod alone;
mod audit;
mod command;
mod print;
mod random;
mod rows;
mod script;
mod world;

mod attempts;
mod cancel;
mod delivery;
mod expire;
mod idempotency;
mod lists;
mod lose;
mod order;
mod purge;
mod report;
mod restart;
mod retry;
mod slices;
mod stop;
mod undelivered;
mod webhook;

use expect_test::Expect;
use std::string::String;

use world::World;

/// Runs the script and compares the dialogue with the expected one.
#[expect(clippy::needless_pass_by_value, reason = "callers write the expectation in place")]
fn check(script: &str, expect: Expect) {
    let mut world = World::new();
    let mut dialogue = String::from("\n");
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        script::play(&mut world, line, &mut dialogue);
    }
    expect.assert_eq(dialogue.strip_prefix('\n').unwrap_or_default());
}
