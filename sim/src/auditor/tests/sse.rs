//! Jobs that are followed by events, over connections that break.

use super::Story;

const FOLLOWED: &str = "who follows a job gets every chunk once, in order, and then its end";
const FROM_HOLDER: &str = "progress and chunks come from who holds the job";
const WOKEN: &str = "who waits for a job's end is told soon";

const DONE: &str = "event: done\ndata: {\"id\":\"a\",\"status\":\"COMPLETED\",\"output\":[]}\n\n";

/// Events with these chunks.
fn events(chunks: &[(u64, &str)]) -> String {
    let events: Vec<_> = chunks
        .iter()
        .map(|(offset, chunk)| format!("id: {offset}\ndata: {{\"output\":{chunk}}}\n\n"))
        .collect();
    events.concat()
}

/// The same, and the end.
fn whole(chunks: &[(u64, &str)]) -> String {
    events(chunks) + DONE
}

/// A job that runs and has yielded three chunks.
fn running() -> Story {
    let mut story = Story::default();
    story.submit("a", "{}").take("v", "a", "{}").ping("v", "a");
    story.chunk("v", "a", "1").chunk("v", "a", "2").chunk("v", "a", "3");
    story
}

/// The same, and it has completed.
fn over() -> Story {
    let mut story = running();
    story.done("v", "a", r#"{"output":[]}"#);
    story
}

#[test]
fn a_reader_that_is_cut_off_comes_back_and_has_every_chunk_once() {
    let mut story = running();
    let cut = story.follow("a", None, &(events(&[(0, "1"), (1, "2")]) + "id: 2\nda"));
    story.lose(cut).done("v", "a", r#"{"output":[]}"#);
    story.follow("a", Some(1), &whole(&[(2, "3")]));
    story.follow("a", Some(2), DONE);
    story.follow("a", None, &whole(&[(0, "1"), (1, "2"), (2, "3")]));
    story.is_fine();
}

#[test]
fn a_chunk_that_does_not_come_is_missed() {
    for (last, shown) in [
        (None, whole(&[(0, "1"), (1, "2")])),
        (None, whole(&[(1, "2"), (2, "3")])),
        (None, whole(&[(0, "1"), (2, "3")])),
        (Some(0), whole(&[(2, "3")])),
        (None, whole(&[])),
        (Some(1), whole(&[])),
    ] {
        let mut story = over();
        let cut = story.follow("a", None, &events(&[(0, "1"), (1, "2")]));
        story.lose(cut).follow("a", last, &shown);
        story.breaks(FOLLOWED);
    }
}

#[test]
fn a_chunk_that_comes_twice_or_elsewhere_is_one_too_many() {
    let mut story = over();
    story.follow("a", Some(1), &events(&[(1, "2")]));
    story.breaks(FOLLOWED);
    let mut story = over();
    story.follow("a", None, &events(&[(0, "1"), (0, "1")]));
    story.breaks(FOLLOWED);
    let mut story = over();
    story.follow("a", None, &events(&[(0, "1"), (1, "1")]));
    story.breaks(FOLLOWED);
    let mut story = over();
    story.follow("a", None, &events(&[(0, "1")]));
    story.follow("a", None, &events(&[(0, "2")]));
    story.breaks(FOLLOWED);
}

#[test]
fn nothing_comes_after_the_end() {
    let mut story = over();
    story.follow("a", Some(2), &(DONE.to_owned() + DONE));
    story.breaks(FOLLOWED);
}

#[test]
fn offsets_go_on_where_an_attempt_was_lost_and_its_chunks_are_gone() {
    let lost = || {
        let mut story = running();
        story.wait(16_000).status("a", r#""status":"IN_QUEUE","retries":1"#);
        story.take("w", "a", "{}").ping("w", "a").chunk("w", "a", "4").chunk("w", "a", "5");
        story.done("w", "a", r#"{"output":[]}"#);
        story
    };
    let end = DONE.replace("output\"", "retries\":1,\"output\"");
    let mut story = lost();
    story.follow("a", None, &(events(&[(3, "4"), (4, "5")]) + &end));
    story.follow("a", Some(3), &(events(&[(4, "5")]) + &end));
    story.is_fine();
    let mut story = lost();
    story.follow("a", None, &(events(&[(3, "4")]) + &end));
    story.breaks(FOLLOWED);
    let mut story = lost();
    story.follow("a", None, &(events(&[(2, "3"), (3, "4"), (4, "5")]) + &end));
    story.breaks(FROM_HOLDER);
}

#[test]
fn offsets_go_on_after_an_explicit_retry() {
    let retried = || {
        let mut story = Story::default();
        story.submit("a", "{}").take("v", "a", "{}").ping("v", "a").chunk("v", "a", "1");
        story.done("v", "a", r#"{"error":"e"}"#);
        let cut = story.follow("a", None, &events(&[(0, "1")]));
        story.lose(cut).status("a", r#""status":"FAILED","error":"e""#).change("retry", "a", "IN_QUEUE");
        story.take("w", "a", "{}").ping("w", "a").chunk("w", "a", "2").chunk("w", "a", "3");
        story.done("w", "a", r#"{"output":[]}"#);
        story
    };
    let mut story = retried();
    story.follow("a", Some(0), &whole(&[(1, "2"), (2, "3")]));
    story.is_fine();
    let mut story = retried();
    story.follow("a", Some(0), &whole(&[(2, "3")]));
    story.breaks(FOLLOWED);
    let mut story = retried();
    story.follow("a", None, &events(&[(0, "2")]));
    story.breaks(FOLLOWED);
}

#[test]
fn a_reader_that_comes_late_is_told_the_end_soon_after_it_came() {
    let mut story = over();
    let id = story.wait(200_000).follow("a", Some(2), "event: do");
    story.lose(id).is_fine();
}

#[test]
fn a_reader_is_told_the_end_soon() {
    let mut story = over();
    let id = story.follow("a", Some(2), ": still here\n\n");
    story.wait(30_000).lose(id).is_fine();
    let id = story.follow("a", Some(2), ": still here\n\n");
    story.wait(200_000).lose(id);
    story.breaks(WOKEN);
}
