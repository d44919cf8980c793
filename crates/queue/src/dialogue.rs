//! The rules of the queue as dialogues: what is said to it, and what it does.
//!
//! A script has one command a line (`take w1 x3 idle`); what each word means is in `script.rs`. Time stands
//! still between commands; `wait 31s` lets it pass and ticks on the way whenever the queue wants to. After every
//! command the rows that the changes wrote are compared with the machine's memory (`audit.rs`).

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes the expectations so")]

mod alone;
mod audit;
mod command;
mod print;
mod random;
mod rows;
mod script;
mod world;

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

/// Plays the script and compares the dialogue.
#[expect(clippy::needless_pass_by_value, reason = "it is written where it is used")]
fn check(script: &str, expect: Expect) {
    let mut world = World::new();
    let mut dialogue = String::from("\n");
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        script::play(&mut world, line, &mut dialogue);
    }
    expect.assert_eq(dialogue.strip_prefix('\n').unwrap_or_default());
}
