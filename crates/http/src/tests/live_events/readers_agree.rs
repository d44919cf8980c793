//! A reader that leaves and comes back shows what one shows that never left.

use std::collections::BTreeMap;
use std::time::Duration;

use longshore_engine::Outcome;
use longshore_hostile::cases;
use longshore_model::JobId;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::super::direct::{ADMIN, Direct};
use super::super::fixture::worker;
use super::reader::{EventsReader, ToldEvent, complete, submit, take};

/// What a page shows: the state of each job, and the counts.
#[derive(Debug, Default, PartialEq)]
struct Shown {
    jobs: BTreeMap<String, String>,
    counts: Value,
}

impl Shown {
    fn apply(&mut self, event: &ToldEvent) {
        if event.name != "jobs" {
            return;
        }
        assert_eq!(event.data["more"], 0, "this test makes few changes");
        self.counts = event.data["counts"].clone();
        for row in event.data["changed"].as_array().unwrap() {
            let id = row["id"].as_str().unwrap().to_owned();
            match row["status"].as_str() {
                Some(status) => drop(self.jobs.insert(id, status.to_owned())),
                None => drop(self.jobs.remove(&id)),
            }
        }
    }

    /// Applies every event up to the one with the number `until`.
    async fn read(&mut self, reader: &mut EventsReader, until: u64) {
        while reader.last < until {
            match reader.next().await.unwrap() {
                event if event.name == "hello" => {}
                event => self.apply(&event),
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Submit,
    Take,
    Complete,
    Fail,
    CancelFirst,
    Purge,
    Wait,
    Leave,
    ComeBack,
}

fn step() -> impl Strategy<Value = Step> {
    use Step::{CancelFirst, ComeBack, Complete, Fail, Leave, Purge, Submit, Take, Wait};
    prop::sample::select(vec![
        Submit,
        Submit,
        Submit,
        Take,
        Take,
        Complete,
        Fail,
        CancelFirst,
        Purge,
        Wait,
        Leave,
        ComeBack,
    ])
}

/// Does a step that changes jobs, or lets time pass.
async fn act(server: &Direct, step: Step, running: &mut Vec<JobId>) {
    match step {
        Step::Submit => drop(submit(server).await),
        Step::Take => running.extend(take(server).await),
        Step::Complete => {
            if let Some(job) = running.pop() {
                complete(server, job).await;
            }
        }
        Step::Fail => {
            if let Some(job) = running.pop() {
                let outcome = Outcome::Failed { error: "e".to_owned(), output: None };
                let demo = server.engine.endpoint("demo").unwrap();
                demo.workers().report(worker(), job, outcome).await.unwrap();
            }
        }
        Step::CancelFirst => {
            let list = server.ask("GET", "/v2/demo/requests", "").await.json();
            if let Some(id) = list["requests"][0]["id"].as_str() {
                server.ask("POST", &format!("/v2/demo/cancel/{id}"), "").await;
            }
        }
        Step::Purge => drop(server.ask("POST", "/v2/demo/purge-queue", "").await),
        Step::Wait => sleep(Duration::from_millis(300)).await,
        Step::Leave | Step::ComeBack => {}
    }
}

/// Runs the steps; one reader leaves and comes back, another one never leaves. Both end with the state of the server.
async fn readers_agree(steps: Vec<Step>) {
    let server = Direct::start().await;
    let path = "/v1/events?topics=jobs&endpoint=demo";
    let mut stays = EventsReader::open(&server, path, ADMIN, None).await;
    let mut leaves = Some(EventsReader::open(&server, path, ADMIN, None).await);
    let (mut shown_by_stays, mut shown_by_leaves) = (Shown::default(), Shown::default());
    let (mut last, mut running) = (leaves.as_mut().unwrap().next().await.unwrap().id, Vec::new());
    stays.next().await.unwrap();
    for step in steps {
        match step {
            Step::Leave => {
                if let Some(reader) = leaves.take() {
                    last = reader.last.max(last);
                }
            }
            Step::ComeBack => {
                if leaves.is_none() {
                    let mut reader = EventsReader::open(&server, path, ADMIN, Some(last)).await;
                    assert_eq!(reader.next().await.unwrap().data["resumed"], json!(true));
                    leaves = Some(reader);
                }
            }
            step => act(&server, step, &mut running).await,
        }
        // What has come so far is read.
        if let Some(reader) = &mut leaves {
            while let Ok(Some(event)) = timeout(Duration::ZERO, reader.next()).await {
                shown_by_leaves.apply(&event);
            }
        }
    }
    let mark = submit(&server).await;
    let end = loop {
        let event = stays.named("jobs").await;
        shown_by_stays.apply(&event);
        if shown_by_stays.jobs.contains_key(&mark) {
            break event.id;
        }
    };
    let mut reader = match leaves {
        Some(reader) => reader,
        None => EventsReader::open(&server, path, ADMIN, Some(last)).await,
    };
    shown_by_leaves.read(&mut reader, end).await;
    assert_eq!(shown_by_leaves, shown_by_stays);
    let page = server.ask("GET", "/v2/demo/requests?limit=100", "").await.json();
    let rows = page["requests"].as_array().unwrap().iter();
    let server_has: BTreeMap<_, _> = rows
        .map(|row| (row["id"].as_str().unwrap().to_owned(), row["status"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(shown_by_stays.jobs, server_has);
    let health = server.ask("GET", "/v2/demo/health", "").await.json();
    assert_eq!(shown_by_stays.counts["queued"], health["jobs"]["inQueue"]);
    assert_eq!(shown_by_stays.counts["running"], health["jobs"]["inProgress"]);
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn a_reader_that_comes_back_ends_with_the_state_of_one_that_never_left(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(readers_agree(steps));
    }
}
