//! Every route with every kind of key: which requests are served; all others are 401 and reveal nothing.

mod forwarded;
mod references;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use longshore_model::{ApiKey, EndpointId, KeyScope, LbSettings, Millis};

use super::direct::{ADMIN, Direct, Watched, request};
use crate::mint_key;

/// The permission that each route needs; the columns of [`MATRIX`].
///
/// `open`: none · `list`: to read the whole catalog · `own`: the same, or to change some endpoint; the response has what
/// the key may change · `look`: to read one endpoint · `manage`: to change the catalog · `change`: to change one endpoint · `keep`: to change some
/// endpoint ·
/// `read`: to read jobs · `jobs`: to submit and change jobs · `work`: a worker token of the endpoint · `some`: to submit
/// jobs to some endpoint · `any`: to read some endpoint · `key`: any valid key · `page`: a session of the
/// console, which no key is · `sign-in`: what a browser sends to get one, tested with the sessions
const ROUTES: &str = "
    GET     /healthz                                   open
    GET     /readyz                                    open
    GET     /metrics                                   any
    GET     /v1/openapi.json                           open
    GET     /v1/docs                                   open
    GET     /v1/docs/style.css                         open
    GET     /console                                   open
    GET     /console/{*path}                           open
    GET     /console/session                           page
    POST    /console/session                           sign-in
    DELETE  /console/session                           page
    GET     /console/a/{hash}/{*path}                  open

    GET     /v1/me                                     key
    GET     /v1/events                                 key
    GET     /v1/attention                              any
    GET     /v1/requests                               key
    GET     /v1/search                                 key
    GET     /v1/webhooks                               key
    POST    /v1/webhooks/redeliver                     some
    GET     /v1/sessions                               manage
    DELETE  /v1/sessions/{session}                     manage
    POST    /v1/console-codes                          key

    GET     /v1/templates                              own
    POST    /v1/templates                              manage
    GET     /v1/templates/{template}                   list
    PATCH   /v1/templates/{template}                   manage
    DELETE  /v1/templates/{template}                   manage
    POST    /v1/templates/{template}/update            manage
    GET     /v1/secrets                                own
    POST    /v1/secrets                                keep
    GET     /v1/secrets/{secret}                       list
    PATCH   /v1/secrets/{secret}                       manage
    DELETE  /v1/secrets/{secret}                       manage
    POST    /v1/secrets/{secret}/update                manage
    GET     /v1/endpoints                              any
    POST    /v1/endpoints                              manage
    GET     /v1/endpoints/{endpoint}                   look
    PATCH   /v1/endpoints/{endpoint}                   change
    DELETE  /v1/endpoints/{endpoint}                   change
    POST    /v1/endpoints/{endpoint}/update            change
    POST    /v1/endpoints/{endpoint}/worker-token      change
    POST    /v1/endpoints/{endpoint}/deploy            change
    GET     /v1/endpoints/{endpoint}/logs              look
    GET     /v1/endpoints/{endpoint}/history           look
    GET     /v1/endpoints/{endpoint}/failures          look
    GET     /v1/endpoints/{endpoint}/objectives        look
    GET     /v1/history                                any
    GET     /v1/endpoints/{endpoint}/versions          look
    POST    /v1/endpoints/{endpoint}/versions/{version}/restore change
    GET     /v1/endpoints/{endpoint}/workers           look
    GET     /v1/endpoints/{endpoint}/workers/{worker}/logs look
    POST    /v1/endpoints/{endpoint}/workers/drain     change
    POST    /v1/endpoints/{endpoint}/workers/{worker}/drain change
    POST    /v1/endpoints/{endpoint}/workers/{worker}/stop change
    POST    /v1/endpoints/{endpoint}/try-now           change
    GET     /v1/code                                   list
    POST    /v1/code                                   change
    POST    /v1/images                                 manage
    GET     /v1/audit                                  manage
    GET     /v1/machines                               list
    GET     /v1/nodes                                  list
    GET     /v1/server                                 list
    POST    /v1/server/drain                           manage
    DELETE  /v1/server/drain                           manage
    GET     /v1/endpoints/{endpoint}/webhook-secret    change
    POST    /v1/endpoints/{endpoint}/webhook-secret    change
    DELETE  /v1/endpoints/{endpoint}/webhook-secret    change
    GET     /v1/apikeys                                list
    POST    /v1/apikeys                                manage
    GET     /v1/apikeys/{key}                          list
    PATCH   /v1/apikeys/{key}                          manage
    DELETE  /v1/apikeys/{key}                          manage
    POST    /v1/apikeys/{key}/update                   manage
    GET     /v1/pods                                   list
    GET     /v1/pods/{pod}                             list
    GET     /v1/billing/endpoints                      list
    POST    /graphql                                   any
    GET     /v1/containerregistryauth                  list
    POST    /v1/containerregistryauth                  manage
    GET     /v1/containerregistryauth/{containerRegistryAuth}   list
    PATCH   /v1/containerregistryauth/{containerRegistryAuth}   manage
    DELETE  /v1/containerregistryauth/{containerRegistryAuth}   manage
    POST    /v1/containerregistryauth/{containerRegistryAuth}/update   manage
    GET     /v1/networkvolumes                         list
    POST    /v1/networkvolumes                         manage
    GET     /v1/networkvolumes/{networkVolume}         list
    PATCH   /v1/networkvolumes/{networkVolume}         manage
    DELETE  /v1/networkvolumes/{networkVolume}         manage
    POST    /v1/networkvolumes/{networkVolume}/update  manage

    POST    /v2/{endpoint}/run                         jobs
    POST    /v2/{endpoint}/runsync                     jobs
    GET     /v2/{endpoint}/status/{job}                read
    POST    /v2/{endpoint}/status/{job}                read
    GET     /v2/{endpoint}/status-sync/{job}           read
    POST    /v2/{endpoint}/status-sync/{job}           read
    GET     /v2/{endpoint}/stream/{job}                read
    POST    /v2/{endpoint}/stream/{job}                read
    POST    /v2/{endpoint}/cancel/{job}                jobs
    POST    /v2/{endpoint}/retry/{job}                 jobs
    POST    /v2/{endpoint}/purge-queue                 jobs
    GET     /v2/{endpoint}/health                      read
    GET     /v2/{endpoint}/explain                     read
    GET     /v2/{endpoint}/explain/{job}               read
    GET     /v2/{endpoint}/jobs/{job} read
    GET     /v2/{endpoint}/jobs/{job}/input read
    GET     /v2/{endpoint}/jobs/{job}/output read
    GET     /v2/{endpoint}/requests                    read
    POST    /v2/{endpoint}/bulk                        jobs
    GET     /v2/{endpoint}/bulk                        read
    GET     /v2/{endpoint}/bulk/{task}                 read
    DELETE  /v2/{endpoint}/bulk/{task}                 jobs
    GET     /v2/{endpoint}/webhooks                    read
    POST    /v2/{endpoint}/webhooks/redeliver          jobs
    POST    /v2/{endpoint}/webhooks/{webhook}/redeliver     jobs

    POST    /sdk/v2/{endpoint}/run                     jobs
    POST    /sdk/v2/{endpoint}/runsync                 jobs
    GET     /sdk/v2/{endpoint}/status/{job}            read
    POST    /sdk/v2/{endpoint}/status/{job}            read
    GET     /sdk/v2/{endpoint}/status-sync/{job}       read
    POST    /sdk/v2/{endpoint}/status-sync/{job}       read
    GET     /sdk/v2/{endpoint}/stream/{job}            read
    POST    /sdk/v2/{endpoint}/stream/{job}            read
    POST    /sdk/v2/{endpoint}/cancel/{job}            jobs
    POST    /sdk/v2/{endpoint}/retry/{job}             jobs
    POST    /sdk/v2/{endpoint}/purge-queue             jobs
    GET     /sdk/v2/{endpoint}/health                  read
    GET     /sdk/v2/{endpoint}/explain                 read
    GET     /sdk/v2/{endpoint}/explain/{job}           read
    GET     /sdk/v2/{endpoint}/jobs/{job} read
    GET     /sdk/v2/{endpoint}/jobs/{job}/input read
    GET     /sdk/v2/{endpoint}/jobs/{job}/output read
    GET     /sdk/v2/{endpoint}/requests                read
    GET     /sdk/v2/{endpoint}/webhooks                read
    POST    /sdk/v2/{endpoint}/webhooks/redeliver      jobs
    POST    /sdk/v2/{endpoint}/webhooks/{webhook}/redeliver jobs

    GET     /v2/{endpoint}/openai/{*route}             jobs
    POST    /v2/{endpoint}/openai/{*route}             jobs
    GET     /openai/v1/models                          some
    GET     /openai/v1/models/{*model}                 some
    POST    /openai/v1/{*route}                        some

    GET     /v2/{endpoint}/job-take/{worker}           work
    GET     /v2/{endpoint}/job-take-batch/{worker}     work
    GET     /v2/{endpoint}/job-stop/{worker}           work
    GET     /v2/{endpoint}/ping/{worker}               work
    GET     /v2/{endpoint}/code/{hash}                 work
    POST    /v2/{endpoint}/job-done/{worker}/{job}     work
    POST    /v2/{endpoint}/job-stream/{worker}/{job}   work
";

/// Paths and hosts of a load-balancing endpoint. The router has none of them.
const FORWARDED: &str = "
    GET     /lb/{balanced}/{*path}                     jobs
    POST    /lb/{balanced}/{*path}                     jobs
    DELETE  /lb/{balanced}                             jobs
    PROPFIND /lb/{balanced}/{*path}                    jobs
    GET     http://{balanced}.apps.test/{*path}        jobs
    POST    http://{balanced}.apps.test/v1/endpoints   jobs
    GET     http://{balanced}.apps.test/healthz        jobs
";

/// The expected result per kind of key. `yes`: served. `-`: 401, whether or not the path's resource exists, before the
/// body is read, without a change. `here` is the endpoint of the path, `elsewhere` another one.
const MATRIX: &str = "
                                     | open | list | own | look | manage | keep | change | read | jobs | work   | some | any | key | page
    no header                        | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
    an empty header                  | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
    a scheme and nothing             | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
    another scheme                   | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
    bytes that are no text           | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
    an unknown key                   | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
    a key and one letter more        | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
    a key and one letter less        | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
    an expired key                   | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
    a disabled key                   | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
    a deleted key                    | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
    a key without scopes             | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | yes | -
    the operator's key               | yes  | yes  | yes | yes  | yes    | yes  | yes    | yes  | yes  | -    | yes  | yes   | yes | -
    the same, bare                   | yes  | yes  | yes | yes  | yes    | yes  | yes    | yes  | yes  | -    | yes  | yes   | yes | -
    manage                           | yes  | yes  | yes | yes  | yes    | yes  | yes    | -    | -    | -    | -    | yes   | yes | -
    manage here                      | yes  | -    | yes | yes  | -      | yes  | yes    | -    | -    | -    | -    | yes   | yes | -
    manage elsewhere                 | yes  | -    | yes | -    | -      | yes  | -      | -    | -    | -    | -    | yes   | yes | -
    read                             | yes  | yes  | yes | yes  | -      | -    | -      | yes  | -    | -    | -    | yes   | yes | -
    read, bare                       | yes  | yes  | yes | yes  | -      | -    | -      | yes  | -    | -    | -    | yes   | yes | -
    read here                        | yes  | -    | -   | yes  | -      | -    | -      | yes  | -    | -    | -    | yes   | yes | -
    read elsewhere                   | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | yes   | yes | -
    jobs                             | yes  | -    | -   | -    | -      | -    | -      | yes  | yes  | -    | yes  | -     | yes | -
    jobs here                        | yes  | -    | -   | -    | -      | -    | -      | yes  | yes  | -    | yes  | -     | yes | -
    jobs here, bare                  | yes  | -    | -   | -    | -      | -    | -      | yes  | yes  | -    | yes  | -     | yes | -
    jobs elsewhere                   | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | yes  | -     | yes | -
    read here, jobs elsewhere        | yes  | -    | -   | yes  | -      | -    | -      | yes  | -    | -    | yes  | yes   | yes | -
    jobs here, read elsewhere        | yes  | -    | -   | -    | -      | -    | -      | yes  | yes  | -    | yes  | yes   | yes | -
    manage, jobs elsewhere           | yes  | yes  | yes | yes  | yes    | yes  | yes    | -    | -    | -    | yes  | yes   | yes | -
    a worker's token                 | yes  | -    | -   | -    | -      | -    | -      | -    | -    | yes  | -    | -     | -   | -
    a worker's token, bare           | yes  | -    | -   | -    | -      | -    | -      | -    | -    | yes  | -    | -     | -   | -
    a worker's token of elsewhere    | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
    a worker's token, one digit off  | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
    elsewhere's token, our name      | yes  | -    | -   | -    | -      | -    | -      | -    | -    | -    | -    | -     | -   | -
";

/// One row of the table: a kind of key, and what it permits.
struct KeyKind {
    name: &'static str,
    may: BTreeSet<&'static str>,
}

fn kinds() -> Vec<KeyKind> {
    let mut rows = MATRIX.lines().map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let columns = rows.by_ref().find(|cells| cells.len() > 1).unwrap();
    let rows = rows.filter(|cells| cells.len() > 1);
    let kinds = rows.map(|cells| {
        assert_eq!(cells.len(), columns.len(), "{cells:?}");
        let may = columns[1..].iter().zip(&cells[1..]).filter_map(|(column, cell)| match *cell {
            "yes" => Some(*column),
            "-" => None,
            other => panic!("{other}"),
        });
        KeyKind { name: cells[0], may: may.collect() }
    });
    kinds.collect()
}

#[derive(Clone, Copy, Debug)]
struct Route {
    method: &'static str,
    pattern: &'static str,
    takes: &'static str,
}

/// The routes of the router.
fn routes() -> Vec<Route> {
    rows_of(ROUTES)
}

/// The routes of the router, and the addresses whose requests are forwarded.
fn addresses() -> Vec<Route> {
    [rows_of(ROUTES), rows_of(FORWARDED)].concat()
}

fn rows_of(table: &'static str) -> Vec<Route> {
    let rows = table.lines().map(|row| row.split_ascii_whitespace().collect::<Vec<_>>());
    let rows = rows.filter(|cells| !cells.is_empty());
    rows.map(|cells| Route { method: cells[0], pattern: cells[1], takes: cells[2] }).collect()
}

/// Method and path of every route.
pub(super) fn patterns() -> Vec<(&'static str, &'static str)> {
    routes().iter().map(|route| (route.method, route.pattern)).collect()
}

/// A server with every resource that the routes name.
struct World {
    server: Direct,
    /// Used by no endpoint, so that it can be deleted.
    template: String,
    /// A load-balancing endpoint. It is paused: a request that may be forwarded is 503.
    balanced: EndpointId,
    /// The id of a key that sends none of the requests.
    key: String,
    auth: String,
    volume: String,
    waiting: String,
    failed: String,
    /// The id of a job that has ended.
    webhook: String,
    /// The id of a session of the console.
    session: String,
    /// The id of a bulk task.
    task: String,
}

impl World {
    async fn start() -> Self {
        let server = Direct::start().await;
        let made = server.ask("POST", "/v1/templates", r#"{"name":"spare"}"#).await.json();
        let template = made["id"].as_str().unwrap().to_owned();
        let balanced = forwarded::paused_endpoint(&server, LbSettings::default()).await;
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
    fn path(&self, route: Route, missing: bool) -> String {
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
    fn body(&self, route: Route) -> String {
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
    async fn credential(&self, kind: &str) -> Option<Vec<u8>> {
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
    async fn add(&self, scopes: Vec<KeyScope>, change: impl FnOnce(&mut ApiKey)) -> String {
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

#[tokio::test(start_paused = true)]
async fn the_table_has_every_route_of_the_server() {
    // The router itself reports its paths, and for a method that none of them has, the methods of each.
    let shown = format!("{:?}", crate::routes());
    let paths: BTreeSet<&str> =
        shown.split('"').filter(|text| text.starts_with('/') && !text.contains("__private")).collect();
    let server = Direct::start().await;
    let mut found = BTreeSet::new();
    for path in paths.into_iter().filter(|path| *path != "/") {
        let answer = server.ask("PUT", path, "").await;
        assert_eq!(answer.status, 405, "{path}");
        let methods = answer.header("allow").unwrap().split(',').map(str::trim).map(str::to_owned);
        found.extend(methods.filter(|method| method != "HEAD").map(|method| (path.to_owned(), method)));
    }
    let known: BTreeSet<_> =
        routes().iter().map(|route| (route.pattern.to_owned(), route.method.to_owned())).collect();
    assert_eq!(found, known, "add the new route to the table above, with what it takes");
}

#[tokio::test(start_paused = true)]
async fn a_key_without_permission_gets_401_and_changes_nothing() {
    let world = World::start().await;
    let seen = async || {
        let mut content = world.server.content().await;
        content.push(world.server.ask("GET", &format!("/v1/apikeys/{}", world.key), "").await.body);
        content
    };
    let before = seen().await;
    let mut refused = 0;
    for kind in kinds() {
        let credential = world.credential(kind.name).await;
        for route in addresses()
            .into_iter()
            .filter(|route| !kind.may.contains(route.takes) && route.takes != "sign-in")
        {
            for (missing, method) in [(false, route.method), (true, route.method), (false, "PUT")] {
                let (body, read) = Watched::body(&world.body(route));
                let mut asked = request(method, &world.path(route, missing), None, body);
                if let Some(value) = &credential {
                    asked.headers_mut().insert("authorization", value.as_slice().try_into().unwrap());
                }
                let answer = world.server.send(asked).await;
                let what = format!("{} on {method} {} (missing: {missing})", kind.name, route.pattern);
                // A method that a path does not have needs any valid key.
                if method == "PUT" && answer.status == 405 {
                    // The console's addresses are no secret.
                    let is_open = route.pattern.starts_with("/console");
                    assert!(is_open || kind.may.len() > 1 || IN_FORCE.contains(&kind.name), "{what}");
                    continue;
                }
                assert_eq!((answer.status.as_u16(), answer.code().as_str()), (401, "unauthorized"), "{what}");
                assert!(!read.load(Ordering::Relaxed), "{what}: the body was read");
                refused += 1;
            }
        }
    }
    assert_eq!(seen().await, before, "a request that was refused changed something");
    assert!(refused > 2_000, "only {refused}");
}

/// Keys that are valid and permit nothing here.
const IN_FORCE: [&str; 5] = [
    "a key without scopes",
    "manage elsewhere",
    "read elsewhere",
    "jobs elsewhere",
    "a worker's token of elsewhere",
];

#[tokio::test(start_paused = true)]
async fn a_key_with_permission_is_served_and_gets_404_for_what_does_not_exist() {
    for kind in kinds() {
        // What only reads leaves the world as it is for the next route.
        let read = World::start().await;
        for route in addresses().into_iter().filter(|route| kind.may.contains(route.takes)) {
            let changed;
            let world = if route.method == "GET" && route.takes != "work" {
                &read
            } else {
                changed = World::start().await;
                &changed
            };
            let credential = world.credential(kind.name).await;
            let send = async |missing| {
                let mut asked = request(route.method, &world.path(route, missing), None, world.body(route));
                if let Some(value) = &credential {
                    asked.headers_mut().insert("authorization", value.as_slice().try_into().unwrap());
                }
                world.server.send(asked).await
            };
            let what = format!("{} on {} {}", kind.name, route.method, route.pattern);
            let answer = send(false).await;
            let is_for_worker = route.method == "POST" && route.pattern.ends_with("{*route}");
            // The only worker is external, so the server cannot stop it.
            let is_of_worker = route.method == "POST" && route.pattern.contains("/workers/");
            // The endpoint's versions have no code.
            let is_code = route.pattern.contains("/code/") && answer.status == 404;
            // The server has no Docker daemon.
            let is_image = route.pattern == "/v1/images" && answer.status == 400;
            let is_forwarded = route.pattern.contains("{balanced}");
            if is_forwarded {
                let code = answer.header("x-longshore-error").map(str::to_owned);
                assert_eq!((answer.status.as_u16(), code.as_deref()), (503, Some("paused")), "{what}");
            }
            assert!(
                is_image
                    || is_code
                    || is_forwarded
                    || answer.status.is_success()
                    || ((is_for_worker || is_of_worker) && answer.status == 400),
                "{what}: {answer:?}"
            );
            let answer = send(true).await;
            let names_something = route.pattern.contains('{');
            let expected = match route.takes {
                _ if !names_something || route.pattern == "/openai/v1/{*route}" => continue,
                // Addresses within the page.
                _ if route.pattern == "/console/{*path}" => continue,
                "some" | "open" => 404,
                // A token is for one endpoint, and so is a key that names some.
                "work" => 401,
                _ if kind.name.split([' ', ',']).any(|word| word == "here") => 401,
                _ => 404,
            };
            assert_eq!(answer.status, expected, "{what}, which does not exist: {answer:?}");
            answer.code();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_path_that_is_no_text_is_401_to_strangers_too() {
    let world = World::start().await;
    for route in routes().into_iter().filter(|route| !["open", "sign-in"].contains(&route.takes)) {
        for garbage in ["%ff", "%c3%28", "%ed%a0%80"] {
            let parts =
                route.pattern.split('/').map(|part| if part.starts_with('{') { garbage } else { part });
            let path = parts.collect::<Vec<_>>().join("/");
            let answer = world.server.send(request(route.method, &path, None, "{}")).await;
            assert_eq!((answer.status.as_u16(), answer.code().as_str()), (401, "unauthorized"), "{path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn reading_a_jobs_time_to_live_into_being_takes_more_than_reading() {
    let world = World::start().await;
    let key = world.add(vec![KeyScope::Read { endpoint_ids: vec![] }], |_| {}).await;
    for mount in ["/v2", "/sdk/v2"] {
        for method in ["GET", "POST"] {
            let path = format!("{mount}/demo/status/{}?ttl=60000", world.waiting);
            assert_eq!(world.server.send(request(method, &path, Some(&key), "")).await.status, 401);
        }
    }
}
