//! Random bits of the operating system, fetched by the page: a call into the kernel for each job's id would be a
//! twentieth of what its submit costs.

use std::sync::{Mutex, PoisonError};

use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};

const DRAW_BYTES: usize = 16;
const PAGE_BYTES: usize = 4096;

/// Random bits that were fetched and are not given out yet.
pub(crate) struct RandomPage {
    rest: Mutex<Rest>,
}

struct Rest {
    bytes: [u8; PAGE_BYTES],
    /// How many of them are left, from the front.
    left: usize,
}

impl RandomPage {
    pub(crate) const fn new() -> Self {
        Self { rest: Mutex::new(Rest { bytes: [0; PAGE_BYTES], left: 0 }) }
    }

    /// 128 bits that nobody has seen before.
    pub(crate) fn draw(&self) -> Result<u128, Unspecified> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        if rest.left == 0 {
            SystemRandom::new().fill(&mut rest.bytes)?;
            rest.left = PAGE_BYTES;
        }
        rest.left -= DRAW_BYTES;
        let left = rest.left;
        let mut drawn = [0; DRAW_BYTES];
        // What was given out is not kept here: it may be somebody's secret.
        drawn.swap_with_slice(&mut rest.bytes[left..left + DRAW_BYTES]);
        Ok(u128::from_ne_bytes(drawn))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn nothing_is_drawn_twice_and_nothing_drawn_is_kept() {
        let page = RandomPage::new();
        let count = 3 * PAGE_BYTES / DRAW_BYTES;
        let drawn: HashSet<u128> = (0..count).map(|_| page.draw().unwrap()).collect();
        assert_eq!(drawn.len(), count);
        assert!(!drawn.contains(&0));
        assert_eq!(page.rest.lock().unwrap().bytes, [0; PAGE_BYTES]);
    }
}
