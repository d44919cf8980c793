//! What the edge adds to responses: request ids, traces and CORS headers; and which routes each listener serves.

use http::{HeaderMap, Request};

use super::direct::{ADMIN, Direct, request};
use crate::{Origins, Surface};

const TRACED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const PAGE: &str = "https://app.example";

fn with(method: &str, path: &str, headers: &[(&'static str, &str)]) -> Request<axum::body::Body> {
    let mut asked = request(method, path, None, "");
    for (name, value) in headers {
        asked.headers_mut().insert(*name, value.parse().unwrap());
    }
    asked
}

fn cors_headers(headers: &HeaderMap) -> usize {
    headers.keys().filter(|name| name.as_str().starts_with("access-control-")).count()
}

#[tokio::test(start_paused = true)]
async fn answers_carry_the_senders_name_and_trace() {
    let server = Direct::start().await;
    // With and without the router, refused and served.
    for (method, path) in
        [("POST", "/v2/demo/run"), ("GET", "/v2/demo/health"), ("GET", "/v1/none"), ("GET", "/healthz")]
    {
        let named = [("x-request-id", "client-7"), ("traceparent", TRACED)];
        let answer = server.send(with(method, path, &named)).await;
        assert_eq!(
            (answer.header("x-request-id"), answer.header("traceparent")),
            (Some("client-7"), Some(TRACED))
        );
        let foul = [("x-request-id", "a b"), ("traceparent", "00-x")];
        let answer = server.send(with(method, path, &foul)).await;
        assert_eq!((answer.header("x-request-id").unwrap().len(), answer.header("traceparent")), (16, None));
    }
}

#[tokio::test(start_paused = true)]
async fn browsers_are_told_nothing_by_default() {
    let server = Direct::start().await;
    let asked = [("origin", PAGE), ("access-control-request-method", "POST")];
    for method in ["OPTIONS", "POST"] {
        let answer = server.send(with(method, "/v2/demo/run", &asked)).await;
        assert_eq!(cors_headers(&answer.headers), 0);
        assert_eq!(answer.header("vary"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn pages_of_known_origins_may_call_and_read() {
    let mut server = Direct::start().await;
    server.edge =
        server.edge.with_origins(Some(Origins::These(vec![PAGE.to_owned(), "https://b.example".to_owned()])));
    let asks = |origin| {
        with(
            "OPTIONS",
            "/v2/demo/run",
            &[
                ("origin", origin),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", "authorization,x-stainless-os"),
            ],
        )
    };
    let answer = server.send(asks(PAGE)).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE));
    assert_eq!(answer.header("access-control-allow-headers"), Some("authorization,x-stainless-os"));
    assert!(answer.header("access-control-allow-methods").unwrap().contains("PATCH"));
    assert_eq!(answer.header("vary"), Some("Origin"));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    for origin in ["https://app.example.evil", "https://app.exampl", "null", "http://app.example"] {
        let answer = server.send(asks(origin)).await;
        assert_eq!((cors_headers(&answer.headers), answer.header("vary")), (0, Some("Origin")), "{origin}");
    }
    // A page can read refusals too, so that it sees a wrong key instead of a network error.
    let answer = server.send(with("POST", "/v2/demo/run", &[("origin", PAGE)])).await;
    assert_eq!((answer.status.as_u16(), answer.header("access-control-allow-origin")), (401, Some(PAGE)));
    assert!(answer.header("access-control-expose-headers").unwrap().contains("Retry-After"));
    // A client that is no browser gets no CORS header.
    let answer = server.ask("GET", "/v2/demo/health", "").await;
    assert_eq!(cors_headers(&answer.headers), 0);
}

#[tokio::test(start_paused = true)]
async fn every_page_may_call_where_the_operator_says_so() {
    let mut server = Direct::start().await;
    server.edge = server.edge.with_origins(Some(Origins::Any));
    let answer = server.send(with("GET", "/v2/demo/health", &[("origin", "https://any.example")])).await;
    assert_eq!((answer.header("access-control-allow-origin"), answer.header("vary")), (Some("*"), None));
}

#[tokio::test(start_paused = true)]
async fn each_address_answers_its_part() {
    let mut server = Direct::start().await;
    let whole = server.edge.clone();
    for (part, management) in [(Surface::Jobs, 404), (Surface::All, 200)] {
        server.edge = whole.restricted_to(part);
        for path in ["/v2/demo/health", "/sdk/v2/demo/health", "/v2/demo/requests"] {
            assert_eq!(server.ask("GET", path, "").await.status, 200, "{part:?} {path}");
        }
        for path in ["/v1/endpoints", "/v1/openapi.json", "/metrics", "//v1//endpoints/"] {
            assert_eq!(server.ask("GET", path, "").await.status, management, "{part:?} {path}");
        }
        assert_eq!(server.ask("POST", "/v2/demo/run", r#"{"input":{}}"#).await.status, 200);
        assert_eq!(server.ask("GET", "/healthz", "").await.status, 200);
        // Neither with a key nor without.
        let stranger = server.send(request("GET", "/v1/endpoints", None, "")).await.status;
        assert_eq!(stranger, if management == 200 { 401 } else { 404 });
        assert_eq!(server.send(request("GET", "/v1/endpoints", Some(ADMIN), "")).await.status, management);
    }
}
