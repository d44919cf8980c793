//! Workers against a server whose responses the test chooses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use super::environment::tests::variables;
use super::{Ending, ForeignJobs, Worker};
use crate::fixture::{quiet_world, serve, wait_for_trace};
use crate::world::World;

/// Delivers one job once and accepts everything else.
fn serve_one_job(world: &World) {
    let handed = Arc::new(AtomicBool::new(false));
    serve(world, move |_, uri, _| {
        let path = uri.path();
        if path.contains("/job-take") && !handed.swap(true, Ordering::Relaxed) {
            let job = r#"{"id":"j-1","status":"IN_PROGRESS","input":{}}"#;
            let batch = path.contains("-batch");
            return (200, if batch { format!("[{job}]") } else { job.to_owned() });
        }
        if path.contains("/job-take") || path.contains("/job-stop") {
            (204, String::new())
        } else {
            (200, String::new())
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_worker_takes_works_and_posts() {
    for seed in 0..20 {
        let (world, mut rng) = quiet_world(seed);
        serve_one_job(&world);
        let worker =
            Worker::start(&world, &mut rng, &ForeignJobs::default(), "ep", &variables("w1")).unwrap();
        let marks = [
            "WorkerStarted(\"w1\", \"ep\")",
            "HandlerBegan(\"w1\", \"j-1\")",
            "HandlerEnded",
            "job-done/w1/j-1",
        ];
        wait_for_trace(&world, &marks).await;
        worker.kill();
        wait_for_trace(&world, &["WorkerEnded(\"w1\", true)"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_asked_to_end_does() {
    for seed in 0..20 {
        let (world, mut rng) = quiet_world(seed);
        serve_one_job(&world);
        let worker =
            Worker::start(&world, &mut rng, &ForeignJobs::default(), "ep", &variables("w1")).unwrap();
        let before = wait_for_trace(&world, &["HandlerBegan"]).await;
        worker.terminate();
        let ending = worker.ended().await;
        let by_itself = Ending { code: Some(0), signal: None };
        let at_once = Ending { code: None, signal: Some(15) };
        assert!(ending == by_itself || ending == at_once, "{ending:?}");
        let trace = before + &wait_for_trace(&world, &["WorkerEnded(\"w1\", "]).await;
        assert!(trace.contains("HandlerEnded"), "{trace}");
        assert!(ending == at_once || trace.contains("job-done/w1/j-1"), "{trace}");
    }
}
