//! When a job may be handed out although a worker was given it before.

use super::Story;

const HELD_ONCE: &str = "a job is not handed out while its worker may still have it";

#[test]
fn a_question_for_what_to_stop_is_a_sign_of_life_unless_it_is_refused() {
    for status in [204, 503] {
        let mut story = Story::default();
        story.submit("a", "{}").take("v", "a", "{}").ping("v", "a").wait(14_000);
        story.ask("GET", "/v2/e/job-stop/v?gpu=x", "", status, "").wait(2_000).take("w", "a", "{}");
        if status == 204 {
            story.breaks(HELD_ONCE);
        } else {
            story.is_fine();
        }
    }
}

#[test]
fn a_request_that_broke_off_may_have_been_heard_by_nobody() {
    let mut story = Story::default();
    story.submit("a", "{}").take("v", "a", "{}").ping("v", "a").wait(14_000);
    let ping = story.arrive("GET", "/v2/e/ping/v?gpu=x&job_id=a", "");
    story.lose(ping).wait(2_000).take("w", "a", "{}").is_fine();
}
