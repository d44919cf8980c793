//! A script of observations for an auditor, one method per observation or exchange.

use bytes::Bytes;

use crate::auditor::{Auditor, Rules, Transition};
use crate::observation::{ExchangeId, HttpRequest, HttpResponse, Moment, Observation, Party};

/// The wall clock at the start of a script, in ms since 1970.
const BEGINNING_MS: u64 = 1_000_000_000;

/// An auditor, and the observations that a test passes to it.
pub(super) struct Script {
    pub auditor: Auditor,
    now: Moment,
    last_id: u64,
}

impl Default for Script {
    fn default() -> Self {
        Self::with(Rules::default())
    }
}

impl Script {
    /// Starts a script for a server with these rules, which has just started.
    pub fn with(rules: Rules) -> Self {
        let now = Moment { ms: 1_000, wall_ms: BEGINNING_MS };
        let mut script = Self { auditor: Auditor::new(rules), now, last_id: 0 };
        script.observe(&Observation::ServerUp);
        script
    }

    pub fn observe(&mut self, seen: &Observation) {
        self.auditor.observe(self.now, seen);
    }

    /// Advances both clocks of the script by `ms`.
    pub fn wait(&mut self, ms: u64) -> &mut Self {
        self.now = Moment { ms: self.now.ms + ms, wall_ms: self.now.wall_ms + ms };
        self
    }

    /// The wall clock jumps.
    pub fn jump(&mut self, by_ms: i64) -> &mut Self {
        self.now.wall_ms = self.now.wall_ms.saturating_add_signed(by_ms);
        self
    }

    /// Records that a request was sent.
    pub fn send(&mut self, method: &'static str, path: &str, body: &str) -> ExchangeId {
        self.send_with(method, path, body, Vec::new())
    }

    pub fn send_with(
        &mut self,
        method: &'static str,
        path: &str,
        body: &str,
        headers: Vec<(&'static str, String)>,
    ) -> ExchangeId {
        self.last_id += 1;
        let id = ExchangeId(self.last_id);
        let body = Bytes::copy_from_slice(body.as_bytes());
        let request = HttpRequest { method, path: path.to_owned(), headers, body };
        self.observe(&Observation::Sent(id, Party::Client(1), request));
        id
    }

    /// Records that a request was sent and has arrived at the server.
    pub fn arrive(&mut self, method: &'static str, path: &str, body: &str) -> ExchangeId {
        let id = self.send(method, path, body);
        self.wait(1);
        self.observe(&Observation::Arrived(id));
        id
    }

    /// Records the response to a request.
    pub fn answer(&mut self, id: ExchangeId, status: u16, body: &str) -> &mut Self {
        let mut headers = Vec::new();
        if status != 204 {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        if matches!(status, 429 | 503) {
            headers.push(("retry-after".to_owned(), "1".to_owned()));
        }
        let body = if status >= 400 && body.is_empty() { r#"{"error":"no","code":"no"}"# } else { body };
        self.wait(1);
        self.observe(&Observation::Answered(
            id,
            HttpResponse { status, headers, body: Bytes::copy_from_slice(body.as_bytes()) },
        ));
        self
    }

    /// Records that no response will arrive.
    pub fn lose(&mut self, id: ExchangeId) -> &mut Self {
        self.wait(1);
        self.observe(&Observation::Broken(id));
        self
    }

    /// Records a request and its response.
    pub fn ask(
        &mut self,
        method: &'static str,
        path: &str,
        body: &str,
        status: u16,
        answer: &str,
    ) -> &mut Self {
        let id = self.arrive(method, path, body);
        self.answer(id, status, answer)
    }

    /// Records that a job was submitted with this input.
    pub fn submit(&mut self, job: &str, input: &str) -> &mut Self {
        let verb = if job.starts_with("sync-") { "runsync?wait=1000" } else { "run" };
        let body = format!(r#"{{"input":{input}}}"#);
        self.ask(
            "POST",
            &format!("/v2/e/{verb}"),
            &body,
            200,
            &format!(r#"{{"id":"{job}","status":"IN_QUEUE"}}"#),
        )
    }

    /// Records that a worker took a job.
    pub fn take(&mut self, worker: &str, job: &str, input: &str) -> &mut Self {
        let path = format!("/v2/e/job-take/{worker}?gpu=x&job_in_progress=0");
        let answer = format!(r#"{{"id":"{job}","delayTime":1,"status":"IN_PROGRESS","input":{input}}}"#);
        self.ask("GET", &path, "", 200, &answer)
    }

    /// Records a ping of a worker.
    pub fn ping(&mut self, worker: &str, jobs: &str) -> &mut Self {
        self.ask("GET", &format!("/v2/e/ping/{worker}?gpu=x&job_id={jobs}"), "", 200, "")
    }

    /// Records that a worker posted a result or progress.
    pub fn done(&mut self, worker: &str, job: &str, body: &str) -> &mut Self {
        self.ask("POST", &format!("/v2/e/job-done/{worker}/{job}?gpu=x&isStream=false"), body, 200, "{}")
    }

    /// Records a status request that returned the id and these members.
    pub fn status(&mut self, job: &str, record: &str) -> &mut Self {
        let answer = format!(r#"{{"id":"{job}",{record}}}"#);
        self.ask("GET", &format!("/v2/e/status/{job}"), "", 200, &answer)
    }

    /// Records that a worker posted a chunk.
    pub fn chunk(&mut self, worker: &str, job: &str, chunk: &str) -> &mut Self {
        let body = format!(r#"{{"output":{chunk}}}"#);
        self.ask("POST", &format!("/v2/e/job-stream/{worker}/{job}?gpu=x&isStream=false"), &body, 200, "{}")
    }

    /// Records that a client read these chunks.
    pub fn stream(&mut self, job: &str, query: &str, chunks: &str) -> &mut Self {
        self.ask("GET", &format!("/v2/e/stream/{job}?{query}"), "", 200, chunks)
    }

    /// Records that a client follows a job and received these events. The response has not ended.
    pub fn follow(&mut self, job: &str, last: Option<u64>, events: &str) -> ExchangeId {
        let mut headers = vec![("accept", "text/event-stream".to_owned())];
        headers.extend(last.map(|last| ("last-event-id", last.to_string())));
        let id = self.send_with("GET", &format!("/v2/e/stream/{job}"), "", headers);
        self.wait(1);
        self.observe(&Observation::Arrived(id));
        self.wait(1);
        self.observe(&Observation::Piece(id, Bytes::copy_from_slice(events.as_bytes())));
        id
    }

    /// Records a purge of the queue.
    pub fn purge(&mut self, removed: u64) -> &mut Self {
        let answer = format!(r#"{{"removed":{removed},"status":"completed"}}"#);
        self.ask("POST", "/v2/e/purge-queue", "", 200, &answer)
    }

    /// Records a submit with an idempotency key.
    pub fn submit_with_key(&mut self, key: &str, input: &str, status: u16, job: &str) -> &mut Self {
        let body = format!(r#"{{"input":{input}}}"#);
        let id = self.send_with("POST", "/v2/e/run", &body, vec![("idempotency-key", key.to_owned())]);
        self.wait(1);
        self.observe(&Observation::Arrived(id));
        let answer = format!(r#"{{"id":"{job}","status":"IN_QUEUE"}}"#);
        self.answer(id, status, if status == 200 { &answer } else { "" })
    }

    /// Records a webhook call to `http://h/` and its response.
    pub fn call(&mut self, number: u64, body: &str, status: u16) -> &mut Self {
        let body = Bytes::copy_from_slice(body.as_bytes());
        self.observe(&Observation::Called(number, "http://h/".to_owned(), body));
        self.wait(1);
        self.observe(&Observation::CallAnswered(number, status));
        self
    }

    /// Records a status request that was answered with 404.
    pub fn missing(&mut self, job: &str) -> &mut Self {
        self.ask("GET", &format!("/v2/e/status/{job}"), "", 404, "")
    }

    /// Records an operation on a job whose response shows this state.
    pub fn change(&mut self, verb: &str, job: &str, state: &str) -> &mut Self {
        let answer = format!(r#"{{"id":"{job}","status":"{state}"}}"#);
        self.ask("POST", &format!("/v2/e/{verb}/{job}"), "", 200, &answer)
    }

    /// Asserts that no promise was broken.
    pub fn is_fine(&self) {
        assert_eq!(self.auditor.violations(), []);
    }

    /// Asserts that this promise was broken, and no other.
    pub fn breaks(&self, promise: &str) {
        let broken: Vec<_> = self.auditor.violations().iter().map(|violation| violation.promise).collect();
        assert!(!broken.is_empty(), "no violation");
        assert!(broken.iter().all(|name| *name == promise), "{:?}", self.auditor.violations());
    }

    /// Returns how often this transition was counted.
    pub fn transition_count(&self, transition: Transition) -> u64 {
        self.auditor
            .transitions()
            .into_iter()
            .find(|(known, _)| *known == transition)
            .map_or(0, |(_, count)| count)
    }
}
