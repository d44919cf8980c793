//! Outputs and chunks that are damaged on the disk.

use super::Script;
use crate::observation::Observation;

const DAMAGE_TOLD: &str = "damaged data is reported as damaged, and intact data is not";
const DAMAGED: &str = r#"{"error":"it is damaged","code":"damaged"}"#;
const ERROR: &str = "event: error\ndata: {\"error\":\"it is damaged\",\"code\":\"damaged\"}\n\n";

/// A job that has yielded three chunks and completed.
fn over() -> Script {
    let mut script = Script::default();
    script.submit("a", "{}").take("v", "a", "{}").ping("v", "a");
    script.chunk("v", "a", "1").chunk("v", "a", "2").chunk("v", "a", "3");
    script.done("v", "a", r#"{"output":7}"#).wait(1);
    script
}

impl Script {
    /// A question that the server answers with the word that something is damaged; the disk says so, too, or not.
    fn damaged(&mut self, path: &str, read: Option<&Observation>) -> &mut Self {
        let id = self.arrive("GET", path, "");
        self.wait(1);
        if let Some(read) = read {
            self.observe(read);
        }
        self.answer(id, 500, DAMAGED)
    }
}

fn output() -> Observation {
    Observation::OutputDamaged("a".to_owned())
}

fn chunk(offset: u64) -> Observation {
    Observation::ChunkDamaged("a".to_owned(), offset)
}

#[test]
fn damage_is_told_where_it_is() {
    let mut script = over();
    script.damaged("/v2/e/status/a", Some(&output())).damaged("/v2/e/stream/a?offset=0", Some(&chunk(1)));
    script.stream("a", "offset=0", r#"[{"output":1}]"#).stream("a", "offset=2", r#"[{"output":3}]"#);
    script.is_fine();
}

#[test]
fn an_intact_output_is_not_damaged() {
    for (path, read) in [
        ("/v2/e/status/a", None),
        ("/v2/e/status-sync/a", None),
        ("/v2/e/stream/a", None),
        ("/v2/e/status/a", Some(chunk(0))),
        ("/v2/e/job-done/v/a", Some(output())),
    ] {
        let mut script = over();
        script.damaged(path, read.as_ref()).breaks(DAMAGE_TOLD);
    }
}

#[test]
fn a_damaged_output_is_not_shown() {
    for record in [r#""status":"COMPLETED","output":7"#, r#""status":"COMPLETED""#] {
        let mut script = over();
        script.damaged("/v2/e/status/a", Some(&output())).status("a", record);
        let told = script.auditor.violations().iter().any(|violation| violation.promise == DAMAGE_TOLD);
        assert!(told, "{record}: {:?}", script.auditor.violations());
    }
    let mut script = over();
    script.damaged("/v2/e/status/a", Some(&output()));
    script.ask("POST", "/v2/e/cancel/a", "", 200, r#"{"id":"a","status":"COMPLETED"}"#);
    script.is_fine();
}

#[test]
fn a_damaged_chunk_is_not_left_out() {
    for (query, chunks) in [
        ("offset=0", "[]"),
        ("offset=1", "[]"),
        ("offset=0", r#"[{"output":1},{"output":3}]"#),
        ("offset=1", r#"[{"output":3}]"#),
    ] {
        let mut script = over();
        script.observe(&chunk(1));
        script.stream("a", query, chunks);
        let told = script.auditor.violations().iter().any(|violation| violation.promise == DAMAGE_TOLD);
        assert!(told, "{query} {chunks}: {:?}", script.auditor.violations());
    }
}

#[test]
fn who_follows_a_job_is_told_of_damage() {
    for is_damaged in [true, false] {
        let mut script = over();
        let events = "id: 0\ndata: {\"output\":1}\n\n";
        let sse = script.follow("a", None, events);
        if is_damaged {
            script.observe(&chunk(1));
        }
        script.observe(&Observation::Piece(sse, ERROR.into()));
        script.lose(sse);
        if is_damaged {
            script.is_fine();
        } else {
            script.breaks(DAMAGE_TOLD);
        }
    }
}
