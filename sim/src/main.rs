//! Replays worlds.

fn main() {}
