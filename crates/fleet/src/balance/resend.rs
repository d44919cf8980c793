//! Which requests may be sent again after their connection has ended.

use longshore_planted::{Bug, planted};

/// How often a request is sent again.
const RETRIES_MAX: u32 = 2;

/// Whether a request that was not answered may be sent again. `retries`: how often it was already; `is_sent`: whether any
/// byte of it was sent; `is_repeatable`: it changes nothing and has no body.
pub fn may_send_again(retries: u32, is_sent: bool, is_repeatable: bool) -> bool {
    let may_be_twice = is_repeatable || planted(Bug::RequestSentTwice);
    retries < RETRIES_MAX && (!is_sent || may_be_twice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_sent_again_only_if_it_changes_nothing() {
        for (retries, is_sent, is_repeatable, expected) in [
            (0, false, false, true),
            (1, false, true, true),
            (2, false, true, false),
            (0, true, true, true),
            (0, true, false, false),
            (2, true, true, false),
        ] {
            assert_eq!(
                may_send_again(retries, is_sent, is_repeatable),
                expected,
                "{retries} {is_sent} {is_repeatable}"
            );
        }
    }
}
