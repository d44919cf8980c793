//! A server with every resource that the routes name, and a credential of each kind of key.

use longshore_model::{ApiKey, EndpointId, KeyScope, LbSettings, Millis};

use super::super::direct::{ADMIN, Direct, request};
use super::forwarded::paused_endpoint;
use super::table::Route;
use crate::mint_key;

/// A server with every resource that the routes name.
pub(super) struct World {
    pub(super) server: Direct,
    /// Used by no endpoint, so that it can be deleted.
    pub(super) template: String,
    /// A load-balancing endpoint. It is paused: a request that may be forwarded is 503.
    pub(super) balanced: EndpointId,
    /// The id of a key that sends none of the requests.
    pub(super) key: String,
    pub(super) auth: String,
    pub(super) volume: String,
    pub(super) waiting: String,
    pub(super) failed: String,
    /// The id of a job that has ended.
    pub(super) webhook: String,
    /// The id of a session of the console.
    pub(super) session: String,
    /// The id of a bulk task.
    pub(super) task: String,
}

impl World {
    pub(super) async fn start() -> Self {
        let server = Direct::start().await;
        let made = server.ask("POST", "/v1/templates", r#"{"name":"spare"}"#).await.json();
        let template = made["id"].as_str().unwrap().to_owned();
        let balanced = paused_endpoint(&server, LbSettings::default()).await;
        let key = r#"{"name":"spare","scopes":[{"scope":"jobs"}]}"#;
        let key = server.ask("POST", "/v1/apikeys", key).await.json()["id"].as_str().unwrap().to_owned();
        let auth = r#"{"name":"a","username":"u","password":"p"}"#;
        let made = server.ask("POST", "/v1/containerregistryauth", auth).await.json();
        let auth = made["id"].as_str().unwrap().to_owned();
        let made = server.ask("POST", "/v1/networkvolumes", r#"{"name":"v","size":1}"#).await.json();
        let volume = made["id"].as_str().unwrap().to_owned();
        let secret = r#"{"name":"SPARE","value":"v"}"#;
        assert_eq!(server.ask("POST", "/v1/secrets", secret).await.status, 200);
        let failed = submit(&server).await;
        let token = server.engine.worker_token(&server.endpoint);
        let take = request("GET", "/v2/demo/job-take/w-0", Some(&token), "");
        assert_eq!(server.send(take).await.status, 200);
        let path = format!("/v2/demo/job-done/w-0/{failed}");
        server.send(request("POST", &path, Some(&token), r#"{"error":"e","output":"part"}"#)).await;
        let body = r#"{"input":{},"webhook":"http://127.0.0.1:9/"}"#;
        let told = server.ask("POST", "/v2/demo/run", body).await.json()["id"].as_str().unwrap().to_owned();
        server.ask("POST", &format!("/v2/demo/cancel/{told}"), "").await;
        let waiting = submit(&server).await;
        let webhook = format!("{told}-0-cancelled");
        let session = open_session(&server).await;
        let bulk = format!(r#"{{"do":"cancel","ids":["{failed}"]}}"#);
        let made = server.ask("POST", "/v2/demo/bulk", &bulk).await.json();
        let task = made["id"].as_str().unwrap().to_owned();
        Self { server, template, balanced, key, auth, volume, waiting, failed, webhook, session, task }
    }

    /// The route's path with resources that exist, or (`missing`) that do not.
    pub(super) fn path(&self, route: Route, missing: bool) -> String {
        const NO_JOB: &str = "0190163d-8694-739b-aea5-966c26f8ad90";
        let job = if ["/retry/", "/output"].iter().any(|part| route.pattern.contains(part)) {
            &self.failed
        } else {
            &self.waiting
        };
        let endpoint = self.server.endpoint.to_string();
        let of = |there: &str, not: &str| if missing { not.to_owned() } else { there.to_owned() };
        let code = match route.method {
            "POST" => format!("/v1/code?endpoint={}", of(&endpoint, "nosuchendpoint")),
            _ => "/v1/code?name=demo".to_owned(),
        };
        route
            .pattern
            .replace("{endpoint}", &of(&endpoint, "nosuchendpoint"))
            .replace("{balanced}", &of(self.balanced.as_str(), "nosuchendpoint"))
            .replace("{template}", &of(&self.template, "nosuchtemplate"))
            .replace("{session}", &of(&self.session, "nosuchsession"))
            .replace("{key}", &of(&self.key, "nosuchkey"))
            .replace("{containerRegistryAuth}", &of(&self.auth, "nosuchauth"))
            .replace("{networkVolume}", &of(&self.volume, "nosuchvolume"))
            .replace("{secret}", &of("SPARE", "NOSUCHSECRET"))
            .replace("{job}", &of(job, NO_JOB))
            .replace("{task}", &of(&self.task, NO_JOB))
            .replace("{webhook}", &of(&self.webhook, &format!("{NO_JOB}-0-cancelled")))
            .replace("{worker}", "w-0")
            .replace("{version}", "1")
            .replace("{*route}", if route.method == "GET" { "v1/models" } else { "v1/embeddings" })
            .replace("/v1/v1/", "/v1/")
            .replace("{hash}", longshore_console::TREE_HASH)
            .replace("{*path}", &of("main.js", "none.js"))
            .replace("{*model}", &of("m", "nosuchmodel"))
            .replace("{pod}", &of("w-0", "nosuchworker"))
            .replace("/v1/code", &code)
            .replace("/v1/images", "/v1/images?name=demo")
            .replace("/v1/search", "/v1/search?q=demo")
    }

    /// A body with which the route succeeds.
    pub(super) fn body(&self, route: Route) -> String {
        match route.pattern.rsplit('/').next().unwrap() {
            "containerregistryauth" => r#"{"name":"new","username":"u","password":"p"}"#.to_owned(),
            "networkvolumes" => r#"{"name":"new","size":1}"#.to_owned(),
            // No worker is connected that could give another response.
            "{*route}" => "[]".to_owned(),
            "templates" => r#"{"name":"new"}"#.to_owned(),
            "secrets" => r#"{"name":"NEW","value":"v"}"#.to_owned(),
            "{secret}" | "update" if route.pattern.contains("{secret}") => r#"{"value":"w"}"#.to_owned(),
            // The body of a worker: nothing reads it.
            _ if route.pattern.contains("{balanced}") => "{}".to_owned(),
            "endpoints" => format!(r#"{{"templateId":"{}","provider":"external"}}"#, self.template),
            "deploy" => r#"{"endpoint":{"name":"renamed"}}"#.to_owned(),
            "graphql" => r#"{"query":"{ myself { id } }"}"#.to_owned(),
            "bulk" => r#"{"do":"cancel","filter":{},"dryRun":true}"#.to_owned(),
            "run" | "runsync" => r#"{"input":{}}"#.to_owned(),
            "apikeys" => r#"{"name":"new","scopes":[{"scope":"jobs"}]}"#.to_owned(),
            "{template}"
            | "{endpoint}"
            | "{key}"
            | "{networkVolume}"
            | "{containerRegistryAuth}"
            | "update" => r#"{"name":"renamed"}"#.to_owned(),
            _ => r#"{"output":1}"#.to_owned(),
        }
    }

    /// The value of the `Authorization` header for a kind of key.
    pub(super) async fn credential(&self, kind: &str) -> Option<Vec<u8>> {
        let here = || vec![self.server.endpoint, self.balanced];
        let elsewhere = || vec![self.server.other];
        let read = |endpoint_ids| KeyScope::Read { endpoint_ids };
        let jobs = |endpoint_ids| KeyScope::Jobs { endpoint_ids };
        let manage = |endpoint_ids| KeyScope::Manage { endpoint_ids };
        let token = |endpoint: &EndpointId| self.server.engine.worker_token(endpoint);
        let mint = async |scopes, bare: bool| {
            let text = self.add(scopes, |_| {}).await;
            Some(if bare { text } else { format!("Bearer {text}") })
        };
        let all = || vec![KeyScope::manage_all(), read(vec![]), jobs(vec![])];
        let value = match kind {
            "no header" => None,
            "an empty header" => Some(String::new()),
            "a scheme and nothing" => Some("Bearer ".to_owned()),
            "another scheme" => Some(format!("Basic {ADMIN}")),
            "bytes that are no text" => return Some(b"Bearer \xff\xfe".to_vec()),
            "an unknown key" => Some(format!("Bearer ls_0123456789abcdef_{}", "0".repeat(64))),
            "a key and one letter more" => Some(format!("Bearer {ADMIN}x")),
            "a key and one letter less" => Some(format!("Bearer {}", &ADMIN[..ADMIN.len() - 1])),
            "an expired key" => {
                Some(self.add(all(), |key| key.expires_at = Some(self.server.engine.now())).await)
            }
            "a disabled key" => Some(self.add(all(), |key| key.disabled = true).await),
            "a deleted key" => {
                let text = self.add(all(), |_| {}).await;
                self.server.engine.keys().delete(text.split('_').nth(1).unwrap(), |_| true).await.unwrap();
                Some(text)
            }
            "a key without scopes" => mint(vec![], false).await,
            "the operator's key" => Some(format!("Bearer {ADMIN}")),
            "the same, bare" => Some(ADMIN.to_owned()),
            "manage" => mint(vec![KeyScope::manage_all()], false).await,
            "read" => mint(vec![read(vec![])], false).await,
            "read, bare" => mint(vec![read(vec![])], true).await,
            "read here" => mint(vec![read(here())], false).await,
            "read elsewhere" => mint(vec![read(elsewhere())], false).await,
            "jobs" => mint(vec![jobs(vec![])], false).await,
            "jobs here" => mint(vec![jobs(here())], false).await,
            "jobs here, bare" => mint(vec![jobs(here())], true).await,
            "jobs elsewhere" => mint(vec![jobs(elsewhere())], false).await,
            "read here, jobs elsewhere" => mint(vec![read(here()), jobs(elsewhere())], false).await,
            "jobs here, read elsewhere" => mint(vec![jobs(here()), read(elsewhere())], false).await,
            "manage here" => mint(vec![manage(here())], false).await,
            "manage elsewhere" => mint(vec![manage(elsewhere())], false).await,
            "manage, jobs elsewhere" => mint(vec![KeyScope::manage_all(), jobs(elsewhere())], false).await,
            "a worker's token" => Some(format!("Bearer {}", token(&self.server.endpoint))),
            "a worker's token, bare" => Some(token(&self.server.endpoint)),
            "a worker's token of elsewhere" => Some(token(&self.server.other)),
            "a worker's token, one digit off" => Some(off_by_one(&token(&self.server.endpoint))),
            "elsewhere's token, our name" => {
                let (ours, theirs) = (self.server.endpoint.to_string(), self.server.other.to_string());
                Some(token(&self.server.other).replace(&theirs, &ours))
            }
            other => panic!("{other:?} is no kind of key"),
        };
        value.map(String::into_bytes)
    }

    /// Adds a key, and returns its text.
    pub(super) async fn add(&self, scopes: Vec<KeyScope>, change: impl FnOnce(&mut ApiKey)) -> String {
        let mut minted = mint_key("a test's", scopes, Millis(0)).unwrap();
        change(&mut minted.record);
        self.server.engine.keys().put(minted.record).await.unwrap();
        minted.text
    }
}

/// Opens a session of the console, and returns its id.
async fn open_session(server: &Direct) -> String {
    let mut asked = request("POST", "/console/session", None, format!(r#"{{"key":"{ADMIN}"}}"#));
    asked.headers_mut().insert("content-type", "application/json".parse().unwrap());
    assert_eq!(server.send(asked).await.status, 200);
    server.engine.sessions().list()[0].id.clone()
}

async fn submit(server: &Direct) -> String {
    let made = server.ask("POST", "/v2/demo/run", r#"{"input":{}}"#).await.json();
    made["id"].as_str().unwrap().to_owned()
}

fn off_by_one(token: &str) -> String {
    let last = if token.ends_with('0') { "1" } else { "0" };
    format!("{}{last}", &token[..token.len() - 1])
}
