//! Random bits from the operating system.

use ring::rand::{SecureRandom, SystemRandom};

/// 128 random bits.
pub(crate) fn bits() -> u128 {
    let mut bytes = [0; 16];
    // The kernel's generator fails only before it is seeded, which is long over when a server runs. Should it
    // fail all the same, an id is not worth serving: stop this task.
    SystemRandom::new().fill(&mut bytes).expect("the operating system provides random bytes");
    u128::from_be_bytes(bytes)
}
