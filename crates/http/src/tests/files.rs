//! Logs of workers and deployed code, with a fake `FileService`.

use super::direct::Direct;

#[tokio::test(start_paused = true)]
async fn workers_are_listed_and_with_a_word_those_that_ended_too() {
    let server = Direct::start().await;
    let listed = server.ask("GET", "/v1/endpoints/demo/workers", "").await.json();
    assert_eq!(listed.as_array().unwrap().len(), 0, "{listed}");
    let listed = server.ask("GET", "/v1/endpoints/demo/workers?ended=true", "").await.json();
    assert_eq!((&listed[0]["id"], &listed[0]["status"]), (&"w-ended".into(), &"EXITED".into()));
    assert_eq!((&listed[0]["jobsDone"], &listed[0]["startMs"]), (&7.into(), &400.into()));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_nobody_knows_has_no_log() {
    let server = Direct::start().await;
    for worker in ["w-none", "..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "a%00b"] {
        let path = format!("/v1/endpoints/demo/workers/{worker}/logs?follow=true");
        let reply = server.ask("GET", &path, "").await;
        assert_eq!(reply.status, 404, "{worker}: {reply:?}");
    }
    let reply = server.ask("GET", "/v1/endpoints/demo/workers/w-none/logs?tail=-1", "").await;
    assert_eq!((reply.status.as_u16(), reply.code().as_str()), (400, "bad_parameter"));
}

#[tokio::test(start_paused = true)]
async fn code_is_kept_under_a_name_of_the_form_of_a_slug() {
    let server = Direct::start().await;
    let kept = server.ask("POST", "/v1/code?name=hello", "archive").await.json();
    assert_eq!((&kept["bytes"], &kept["createdAt"]), (&7.into(), &"1970-01-01T00:00:00.000Z".into()));
    for query in ["", "?name=", "?name=a", "?name=A-b", "?name=../x", "?name=a%2fb"] {
        let reply = server.ask("POST", &format!("/v1/code{query}"), "archive").await;
        assert_eq!((reply.status.as_u16(), reply.code().as_str()), (400, "bad_parameter"), "{query}");
    }
    let reply = server.ask("POST", "/v1/code?name=hello", "").await;
    assert_eq!((reply.status.as_u16(), reply.code().as_str()), (400, "bad_archive"));
}
