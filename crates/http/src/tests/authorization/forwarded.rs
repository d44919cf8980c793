//! The requests that a load-balancing endpoint forwards without a key, and what is no key there.

use axum::body::Body;
use http::Request;
use longshore_model::{Endpoint, EndpointId, EndpointType, KeyScope, LbSettings, Provider};

use super::super::direct::{ADMIN, Direct, Reply, request};
use super::World;

/// Makes a load-balancing endpoint that gets no workers.
pub(super) async fn paused_endpoint(server: &Direct, lb: LbSettings) -> EndpointId {
    // The management API refuses the provider: this server starts no workers.
    let endpoint = Endpoint {
        id: EndpointId::mint(u128::from(lb.public) + 77),
        name: "balanced".to_owned(),
        slug: None,
        models: Vec::new(),
        endpoint_type: EndpointType::Lb,
        lb: Some(lb),
        provider: Provider::Process,
        workers_min: 0,
        workers_max: 0,
        ..Endpoint::clone(&server.engine.endpoint("demo").unwrap().record())
    };
    server.engine.create_endpoint(endpoint).await.unwrap().id
}

fn asked(method: &str, path: &str, headers: &[(&'static str, &str)]) -> Request<Body> {
    let mut asked = request(method, path, None, "");
    for (name, value) in headers {
        asked.headers_mut().append(*name, value.parse().unwrap());
    }
    asked
}

/// Opens a session of the console. Returns its cookie, and the text that its pages send with it.
async fn sign_in(server: &Direct) -> (String, String) {
    let mut sent = request("POST", "/console/session", None, format!(r#"{{"key":"{ADMIN}"}}"#));
    sent.headers_mut().insert("content-type", "application/json".parse().unwrap());
    let reply = server.send(sent).await;
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    (cookie, reply.json()["csrf"].as_str().unwrap().to_owned())
}

/// The status, and the code in `X-Longshore-Error`.
fn refusal(reply: &Reply) -> (u16, String) {
    (reply.status.as_u16(), reply.header("x-longshore-error").unwrap_or_default().to_owned())
}

/// What a request gets that may be forwarded to a paused endpoint.
fn admitted() -> (u16, String) {
    (503, "paused".to_owned())
}

/// What a request gets that may not.
fn unauthorized() -> (u16, String) {
    (401, "unauthorized".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_cookie_of_the_console_is_no_key_for_a_worker() {
    let world = World::start().await;
    let (cookie, csrf) = sign_in(&world.server).await;
    let headers = [("cookie", cookie.as_str()), ("x-longshore-console", csrf.as_str())];
    assert_eq!(world.server.send(asked("GET", "/v1/endpoints", &headers)).await.status, 200);
    for path in [format!("/lb/{}/x", world.balanced), format!("http://{}.apps.test/x", world.balanced)] {
        for method in ["GET", "POST", "OPTIONS"] {
            let reply = world.server.send(asked(method, &path, &headers)).await;
            assert_eq!(refusal(&reply), unauthorized(), "{method} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_websocket_offers_its_key_as_a_protocol() {
    let world = World::start().await;
    let path = format!("/lb/{}/x", world.balanced);
    for offered in ["longshore", "longshore.key.", "longshore, longshore.key.ls_0123456789abcdef_00"] {
        let reply = world.server.send(asked("GET", &path, &[("sec-websocket-protocol", offered)])).await;
        assert_eq!(refusal(&reply), unauthorized(), "{offered}");
    }
    let key = world.add(vec![KeyScope::Jobs { endpoint_ids: vec![world.balanced] }], |_| {}).await;
    let offered = format!("longshore, longshore.key.{key}");
    let reply = world.server.send(asked("GET", &path, &[("sec-websocket-protocol", &offered)])).await;
    assert_eq!(refusal(&reply), admitted());
    // The header `Authorization` counts alone if there is one.
    let headers = [("sec-websocket-protocol", offered.as_str()), ("authorization", "Bearer other")];
    assert_eq!(refusal(&world.server.send(asked("GET", &path, &headers)).await), unauthorized());
}

#[tokio::test(start_paused = true)]
async fn a_preflight_needs_no_key_and_only_for_a_load_balancing_endpoint() {
    let world = World::start().await;
    let preflight = [("origin", "https://app.example"), ("access-control-request-method", "POST")];
    let path = format!("/lb/{}/x", world.balanced);
    assert_eq!(refusal(&world.server.send(asked("OPTIONS", &path, &preflight)).await), admitted());
    // No other method, and no request that merely has an origin.
    assert_eq!(refusal(&world.server.send(asked("GET", &path, &preflight)).await), unauthorized());
    assert_eq!(refusal(&world.server.send(asked("OPTIONS", &path, &preflight[..1])).await), unauthorized());
    for other in [world.server.endpoint.as_str(), "nosuchendpoint"] {
        let reply = world.server.send(asked("OPTIONS", &format!("/lb/{other}/x"), &preflight)).await;
        assert_eq!(refusal(&reply), unauthorized(), "{other}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_public_endpoint_needs_no_key_and_opens_nothing_else() {
    let world = World::start().await;
    let public = paused_endpoint(&world.server, LbSettings { public: true, ..LbSettings::default() }).await;
    for path in [format!("/lb/{public}/x"), format!("http://{public}.apps.test/x")] {
        for headers in [&[][..], &[("authorization", "Bearer wrong")]] {
            assert_eq!(refusal(&world.server.send(asked("GET", &path, headers)).await), admitted(), "{path}");
        }
    }
    for path in
        [format!("/v2/{public}/health"), format!("/v2/{public}/explain"), format!("/v1/endpoints/{public}")]
    {
        assert_eq!(world.server.send(asked("GET", &path, &[])).await.status, 401, "{path}");
    }
}
