//! Jobs that are followed by events, over connections that break.

use super::Script;

const FOLLOWED: &str = "a follower of a job gets every chunk once, in order, and then the end";
const FROM_HOLDER: &str = "progress and chunks come from the job's worker";
const WOKEN: &str = "a request that waits for a job's end is answered soon";

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
fn running() -> Script {
    let mut script = Script::default();
    script.submit("a", "{}").take("v", "a", "{}").ping("v", "a");
    script.chunk("v", "a", "1").chunk("v", "a", "2").chunk("v", "a", "3");
    script
}

/// The same, and it has completed.
fn over() -> Script {
    let mut script = running();
    script.done("v", "a", r#"{"output":[]}"#);
    script
}

#[test]
fn a_reader_that_is_cut_off_comes_back_and_has_every_chunk_once() {
    let mut script = running();
    let cut = script.follow("a", None, &(events(&[(0, "1"), (1, "2")]) + "id: 2\nda"));
    script.lose(cut).done("v", "a", r#"{"output":[]}"#);
    script.follow("a", Some(1), &whole(&[(2, "3")]));
    script.follow("a", Some(2), DONE);
    script.follow("a", None, &whole(&[(0, "1"), (1, "2"), (2, "3")]));
    script.is_fine();
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
        let mut script = over();
        let cut = script.follow("a", None, &events(&[(0, "1"), (1, "2")]));
        script.lose(cut).follow("a", last, &shown);
        script.breaks(FOLLOWED);
    }
}

#[test]
fn a_chunk_that_comes_twice_or_elsewhere_is_one_too_many() {
    let mut script = over();
    script.follow("a", Some(1), &events(&[(1, "2")]));
    script.breaks(FOLLOWED);
    let mut script = over();
    script.follow("a", None, &events(&[(0, "1"), (0, "1")]));
    script.breaks(FOLLOWED);
    let mut script = over();
    script.follow("a", None, &events(&[(0, "1"), (1, "1")]));
    script.breaks(FOLLOWED);
    let mut script = over();
    script.follow("a", None, &events(&[(0, "1")]));
    script.follow("a", None, &events(&[(0, "2")]));
    script.breaks(FOLLOWED);
}

#[test]
fn nothing_comes_after_the_end() {
    let mut script = over();
    script.follow("a", Some(2), &(DONE.to_owned() + DONE));
    script.breaks(FOLLOWED);
}

#[test]
fn offsets_go_on_where_an_attempt_was_lost_and_its_chunks_are_gone() {
    let lost = || {
        let mut script = running();
        script.wait(16_000).status("a", r#""status":"IN_QUEUE","retries":1"#);
        script.take("w", "a", "{}").ping("w", "a").chunk("w", "a", "4").chunk("w", "a", "5");
        script.done("w", "a", r#"{"output":[]}"#);
        script
    };
    let end = DONE.replace("output\"", "retries\":1,\"output\"");
    let mut script = lost();
    script.follow("a", None, &(events(&[(3, "4"), (4, "5")]) + &end));
    script.follow("a", Some(3), &(events(&[(4, "5")]) + &end));
    script.is_fine();
    let mut script = lost();
    script.follow("a", None, &(events(&[(3, "4")]) + &end));
    script.breaks(FOLLOWED);
    let mut script = lost();
    script.follow("a", None, &(events(&[(2, "3"), (3, "4"), (4, "5")]) + &end));
    script.breaks(FROM_HOLDER);
}

#[test]
fn offsets_go_on_after_an_explicit_retry() {
    let retried = || {
        let mut script = Script::default();
        script.submit("a", "{}").take("v", "a", "{}").ping("v", "a").chunk("v", "a", "1");
        script.done("v", "a", r#"{"error":"e"}"#);
        let cut = script.follow("a", None, &events(&[(0, "1")]));
        script.lose(cut).status("a", r#""status":"FAILED","error":"e""#).change("retry", "a", "IN_QUEUE");
        script.take("w", "a", "{}").ping("w", "a").chunk("w", "a", "2").chunk("w", "a", "3");
        script.done("w", "a", r#"{"output":[]}"#);
        script
    };
    let mut script = retried();
    script.follow("a", Some(0), &whole(&[(1, "2"), (2, "3")]));
    script.is_fine();
    let mut script = retried();
    script.follow("a", Some(0), &whole(&[(2, "3")]));
    script.breaks(FOLLOWED);
    let mut script = retried();
    script.follow("a", None, &events(&[(0, "2")]));
    script.breaks(FOLLOWED);
}

#[test]
fn a_reader_that_comes_late_is_told_the_end_soon_after_it_came() {
    let mut script = over();
    let id = script.wait(200_000).follow("a", Some(2), "event: do");
    script.lose(id).is_fine();
}

#[test]
fn a_reader_is_told_the_end_soon() {
    let mut script = over();
    let id = script.follow("a", Some(2), ": still here\n\n");
    script.wait(30_000).lose(id).is_fine();
    let id = script.follow("a", Some(2), ": still here\n\n");
    script.wait(200_000).lose(id);
    script.breaks(WOKEN);
}
