//! Logs of workers and deployed code, with a fake `FileService`.

use super::direct::{Direct, request};
use super::fake_files::{ARCHIVE, SENT};

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
async fn an_unknown_worker_has_no_log() {
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

#[tokio::test(start_paused = true)]
async fn a_worker_gets_the_archive_of_its_endpoints_code_and_of_no_other() {
    let server = Direct::start().await;
    let token = server.engine.worker_token(&server.endpoint);
    let asked = async |endpoint: &str, hash: &str, headers: &[(&'static str, String)]| {
        let mut asked = request("GET", &format!("/v2/{endpoint}/code/{hash}"), Some(&token), "");
        for (name, value) in headers {
            asked.headers_mut().insert(*name, value.parse().unwrap());
        }
        server.send(asked).await
    };
    let refused = asked("demo", SENT, &[]).await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (404, "code_not_found"));
    for hash in [SENT, &"1".repeat(64)] {
        let deploy = format!(r#"{{"template":{{"workdir":"code:{hash}"}}}}"#);
        assert_eq!(server.ask("POST", "/v1/endpoints/demo/deploy", &deploy).await.status, 200);
    }
    let whole = asked("demo", SENT, &[]).await;
    assert_eq!((whole.status.as_u16(), &whole.body[..]), (200, ARCHIVE), "an earlier version has it");
    let tag = format!("\"{SENT}\"");
    assert_eq!((whole.header("etag"), whole.header("content-type")), (Some(&*tag), Some("application/gzip")));
    assert_eq!(whole.header("content-length"), Some("10"));

    let rest = [("range", "bytes=3-".to_owned()), ("if-range", tag.clone())];
    let part = asked("demo", SENT, &rest).await;
    assert_eq!((part.status.as_u16(), &part.body[..]), (206, &ARCHIVE[3..]));
    assert_eq!(part.header("content-range"), Some("bytes 3-9/10"));
    let other = asked("demo", SENT, &[("range", "bytes=3-".into()), ("if-range", "\"x\"".into())]).await;
    assert_eq!((other.status.as_u16(), &other.body[..]), (200, ARCHIVE), "it has a part of something else");
    let beyond = asked("demo", SENT, &[("range", "bytes=10-".into())]).await;
    assert_eq!((beyond.status.as_u16(), beyond.header("content-range")), (416, Some("bytes */10")));
    let known = asked("demo", SENT, &[("if-none-match", format!("\"x\", W/{tag}"))]).await;
    assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));

    let missing = asked("demo", &"1".repeat(64), &[]).await;
    assert_eq!((missing.status.as_u16(), missing.code().as_str()), (404, "code_not_stored"));
    for hash in ["x", "..%2fx", &"2".repeat(64)] {
        let refused = asked("demo", hash, &[]).await;
        assert_eq!((refused.status.as_u16(), refused.code().as_str()), (404, "code_not_found"), "{hash}");
    }
    assert_eq!(asked("other", SENT, &[]).await.status, 401, "the token is for one endpoint");
}
