//! Deploys to an endpoint: what they change, what stays, and which keys may deploy what.

use longshore_model::KeyScope;
use serde_json::{Value, json};

use super::direct::{Direct, Reply, request};
use super::fake_files::SENT;
use crate::mint_key;

/// A server whose endpoint `demo` has a template of its own.
struct World {
    server: Direct,
}

impl World {
    async fn start() -> Self {
        let server = Direct::start().await;
        let own = r#"{"name":"own","imageName":"i","env":{"OPERATOR":"hush"}}"#;
        let own = server.ask("POST", "/v1/templates", own).await.json()["id"].clone();
        let body = json!({ "templateId": own }).to_string();
        assert_eq!(server.ask("PATCH", "/v1/endpoints/demo", &body).await.status, 200);
        Self { server }
    }

    async fn deploy(&self, body: &Value) -> Reply {
        self.server.ask("POST", "/v1/endpoints/demo/deploy", &body.to_string()).await
    }

    /// Deploys, and returns the version and whether anything changed.
    async fn deployed(&self, body: &Value) -> (u64, bool) {
        let reply = self.deploy(body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let answer = reply.json();
        (answer["version"].as_u64().unwrap(), answer["changed"].as_bool().unwrap())
    }

    async fn endpoint(&self) -> Value {
        self.server.ask("GET", "/v1/endpoints/demo?includeTemplate=true", "").await.json()
    }

    /// The values of the variables of `demo`, as its workers get them.
    fn env(&self) -> Value {
        let record = self.server.engine.endpoint("demo").unwrap().record();
        json!(self.server.engine.catalog().template(&record.template_id).unwrap().env)
    }

    async fn key(&self, scopes: Vec<KeyScope>) -> String {
        let minted = mint_key("a test's", scopes, longshore_model::Millis(0)).unwrap();
        self.server.engine.keys().put(minted.record).await.unwrap();
        minted.text
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_deploy_changes_nothing_and_another_keeps_what_it_does_not_name() {
    let world = World::start().await;
    let deploy = json!({
        "template": { "dockerStartCmd": ["run"], "env": { "A": "1", "B": "2" } },
        "endpoint": { "idleTimeout": 7, "workersMax": 2 },
    });
    assert_eq!(world.deployed(&deploy).await, (3, true));
    let tag = world.server.ask("GET", "/v1/endpoints/demo", "").await.header("etag").unwrap().to_owned();
    assert_eq!(world.deployed(&deploy).await, (3, false));
    assert_eq!(world.server.ask("GET", "/v1/endpoints/demo", "").await.header("etag").unwrap(), tag);
    // The operator's own settings and variables.
    assert_eq!(world.server.ask("PATCH", "/v1/endpoints/demo", r#"{"workersMax":9}"#).await.status, 200);
    let template = world.endpoint().await["templateId"].as_str().unwrap().to_owned();
    let env = json!({ "env": { "OPERATOR": "***", "A": "***", "B": "the operator's", "MORE": "3" } });
    let changed = world.server.ask("PATCH", &format!("/v1/templates/{template}"), &env.to_string()).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(world.endpoint().await["deployedEnv"], json!(["A"]), "B is the operator's by now");
    let next = json!({ "template": { "env": { "C": "4" } }, "endpoint": { "idleTimeout": 8 } });
    assert_eq!(world.deployed(&next).await, (5, true));
    let endpoint = world.endpoint().await;
    assert_eq!((&endpoint["workersMax"], &endpoint["idleTimeout"]), (&json!(9), &json!(8)));
    assert_eq!(endpoint["template"]["dockerStartCmd"], json!(["run"]));
    let expected = json!({ "OPERATOR": "hush", "B": "the operator's", "MORE": "3", "C": "4" });
    assert_eq!(world.env(), expected);
    // Without `env`, no variable changes; a change of own fields alone is no new version.
    assert_eq!(world.deployed(&json!({ "endpoint": { "idleTimeout": 9 } })).await, (5, true));
    assert_eq!(world.env(), expected);
    assert_eq!(world.deployed(&json!({ "template": { "env": {} } })).await, (6, true));
    assert_eq!(world.env(), json!({ "OPERATOR": "hush", "B": "the operator's", "MORE": "3" }));
}

#[tokio::test(start_paused = true)]
async fn a_deploy_changes_no_template_of_another_endpoint() {
    let server = Direct::start().await;
    let world = World { server };
    let shared = world.endpoint().await["templateId"].clone();
    let deploy = json!({ "template": { "dockerStartCmd": ["run"] } });
    assert_eq!(world.deployed(&deploy).await, (2, true));
    let own = world.endpoint().await;
    assert_ne!(own["templateId"], shared);
    assert_eq!(own["env"], json!({ "TOKEN": "***" }), "a copy of the shared one");
    let other = world.server.ask("GET", "/v1/endpoints/other?includeTemplate=true", "").await.json();
    assert_eq!((&other["templateId"], &other["version"]), (&shared, &json!(1)));
    assert_eq!(other["template"]["dockerStartCmd"], json!([]));
    assert_eq!(world.deployed(&deploy).await, (2, false));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_deploy_is_refused_by_name_and_changes_nothing() {
    let world = World::start().await;
    let before = world.server.content().await;
    for (body, code, part) in [
        (json!({ "endpoints": {} }), "unknown_field", "the nearest known field is `endpoint`"),
        (json!({ "endpoint": { "workerMax": 1 } }), "unknown_field", "`workersMax`"),
        (json!({ "template": { "dockerStartCommand": [] } }), "unknown_field", "`dockerStartCmd`"),
        (json!({ "endpoint": { "workersMax": "2" } }), "bad_field", "`endpoint.workersMax`"),
        (json!({ "endpoint": { "templateId": "x" } }), "bad_field", "`endpoint.templateId`"),
        (json!({ "endpoint": { "version": 7 } }), "bad_field", "`endpoint.version`"),
        (json!({ "template": { "name": "x" } }), "bad_field", "`template.name`"),
        (json!({ "template": { "endpoints": [] } }), "bad_field", "`template.endpoints`"),
        (json!({ "template": { "env": { "A=": "1" } } }), "bad_field", "`template.env`"),
        (json!({ "template": { "env": { "1A": "1" } } }), "bad_field", "`template.env` has the name"),
        (json!({ "template": { "env": { "1A": { "secret": "T" } } } }), "bad_field", "^[A-Za-z_]"),
        (json!({ "template": { "env": { "A": "***" } } }), "bad_field", "no value is kept"),
        (json!({ "template": { "env": { "A-B": "***" } } }), "bad_field", "no value is kept"),
        (json!({ "template": { "env": { "A": { "secret": "MISSING" } } } }), "bad_field", "MISSING"),
        (json!({ "template": { "workdir": format!("code:{}", "f".repeat(64)) } }), "bad_field", "not here"),
        (json!({ "template": { "workdir": "code:x" } }), "bad_field", "no hash of code"),
        (json!({ "endpoint": { "networkVolumeId": "x" } }), "conflict", "does not exist"),
        (json!({ "endpoint": { "slug": "other" } }), "conflict", "taken"),
        (json!({ "endpoint": { "provider": "process" } }), "bad_field", "`provider`"),
        (json!([]), "bad_json", "object"),
    ] {
        let reply = world.deploy(&body).await;
        assert_eq!((reply.status.as_u16(), reply.code().as_str()), (400, code), "{body}: {reply:?}");
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(text.contains(part), "{body}: {text}");
    }
    let mut request = request("POST", "/v1/endpoints/demo/deploy", Some(super::direct::ADMIN), "{}");
    request.headers_mut().insert("if-match", "\"other\"".parse().unwrap());
    assert_eq!(world.server.send(request).await.status, 412);
    assert_eq!(world.server.content().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_key_for_one_endpoint_deploys_code_that_it_sent_or_a_version_has() {
    let world = World::start().await;
    let here = vec![world.server.endpoint];
    let keys = [
        world.key(vec![KeyScope::Manage { endpoint_ids: here.clone() }]).await,
        world.key(vec![KeyScope::Manage { endpoint_ids: here.clone() }]).await,
    ];
    let ask = async |key: &str, path: &str, body: String| {
        world.server.send(request("POST", path, Some(key), body)).await.status.as_u16()
    };
    let named = |hash: &str| json!({ "template": { "workdir": format!("code:{hash}") } }).to_string();
    let deploy = "/v1/endpoints/demo/deploy";
    let (spare, missing) = ("1".repeat(64), "f".repeat(64));
    for hash in [SENT, &spare, &missing] {
        assert_eq!(ask(&keys[0], deploy, named(hash)).await, 401, "no key has sent {hash}");
    }
    for (path, status) in [
        ("/v1/code?endpoint=other", 401),
        ("/v1/code?endpoint=missing", 401),
        ("/v1/code?name=demo", 401),
        ("/v1/code?name=demo&endpoint=demo", 400),
        ("/v1/code", 401),
        ("/v1/code?endpoint=demo", 200),
    ] {
        assert_eq!(ask(&keys[0], path, "an archive".to_owned()).await, status, "{path}");
    }
    assert_eq!(ask(&keys[1], deploy, named(SENT)).await, 401, "another key has sent it");
    assert_eq!(ask(&keys[0], "/v1/endpoints/other/deploy", named(SENT)).await, 401);
    assert_eq!(ask(&keys[0], deploy, named(SENT)).await, 200);
    // From now on, a version of the endpoint has it.
    assert_eq!(ask(&keys[1], deploy, named(SENT)).await, 200);
    assert_eq!(ask(&keys[1], deploy, named(&spare)).await, 401);
    let other = json!({ "template": { "workdir": "/srv/x" } }).to_string();
    assert_eq!(ask(&keys[1], deploy, other).await, 200);
    assert_eq!(ask(&keys[1], deploy, named(SENT)).await, 200, "an earlier version has it");
    let used = world.server.engine.catalog().code_in_use();
    assert_eq!(used.iter().map(longshore_model::CodeHash::as_str).collect::<Vec<_>>(), [SENT]);
    for scopes in [
        vec![KeyScope::Read { endpoint_ids: vec![] }],
        vec![KeyScope::Jobs { endpoint_ids: vec![] }],
        vec![KeyScope::Manage { endpoint_ids: vec![world.server.other] }],
    ] {
        let key = world.key(scopes).await;
        assert_eq!(ask(&key, deploy, named(SENT)).await, 401);
        assert_eq!(ask(&key, "/v1/code?endpoint=demo", "an archive".to_owned()).await, 401);
    }
}
