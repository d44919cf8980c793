//! Every field that names a resource, with every kind of key and every resource that it could name.

use std::collections::BTreeSet;

use longshore_model::KeyScope;
use serde_json::{Value, json};

use super::super::direct::{Direct, Reply, request};
use crate::management::fields::{Access, Resource};
use crate::management::tables;
use crate::{graphql, mint_key};

/// The fields that name a resource, each with how it is sent: `rest` in a PATCH and a POST to `/update`, `graphql`
/// under the mutation's name, `deploy` in a deploy to the endpoint. `operator` stands for fields that only a key with `manage` for all endpoints may send.
const FIELDS: &str = "
    endpoint  templateId               Template       rest graphql:saveEndpoint graphql:updateEndpointTemplate
    endpoint  networkVolumeId          NetworkVolume  rest graphql:saveEndpoint deploy
    endpoint  networkVolumeIds         NetworkVolume  rest graphql:saveEndpoint deploy
    template  containerRegistryAuthId  RegistryAuth   rest graphql:saveTemplate deploy
    template  workdir                  Code           rest graphql:saveTemplate deploy
    template  env                      Secret         rest graphql:saveTemplate deploy
    template  endpoints                Endpoint       operator
    volume    endpoints                Endpoint       operator
    auth      endpoints                Endpoint       operator
    secret    endpoints                Endpoint       operator
    scope     endpointIds              Endpoint       operator
";

/// Fields whose names end in `Id` or `Ids` and that name no resource of this server.
const PLAIN: [&str; 4] = ["gpuTypeIds", "cpuFlavorIds", "dataCenterIds", "dataCenterId"];

/// The status of a request of a kind of key (the scope, then the endpoints) that names a resource. `own`: an endpoint of
/// a key for `here` uses the resource. `shared`, `every`: the resource is shared with `here`, or with every endpoint.
/// `foreign`: another endpoint uses the resource. `spare`: no endpoint uses it. `missing`: it does not exist. Code is not
/// shared.
const MATRIX: &str = "
                              | own | shared | every | foreign | spare | missing
    manage                    | 200 | 200    | 200   | 200     | 200   | 400
    manage here               | 200 | 200    | 200   | 401     | 401   | 401
    manage here, read         | 200 | 200    | 200   | 401     | 401   | 401
    manage here, jobs         | 200 | 200    | 200   | 401     | 401   | 401
    manage elsewhere, read    | 401 | 401    | 401   | 401     | 401   | 401
    read                      | 401 | 401    | 401   | 401     | 401   | 401
";

#[derive(Debug)]
struct Row {
    table: &'static str,
    field: &'static str,
    resource: &'static str,
    ways: Vec<&'static str>,
}

fn rows() -> Vec<Row> {
    let cells = FIELDS.lines().map(|row| row.split_ascii_whitespace().collect::<Vec<_>>());
    let cells = cells.filter(|cells| !cells.is_empty());
    cells
        .map(|cells| Row { table: cells[0], field: cells[1], resource: cells[2], ways: cells[3..].to_vec() })
        .collect()
}

/// How a template names the code of this name. The server's files have no `missing` code.
fn code(name: &str) -> String {
    let names = ["own", "shared", "every", "foreign", "spare"];
    let digit =
        names.iter().position(|known| *known == name).map_or("f".to_owned(), |place| place.to_string());
    format!("code:{}", digit.repeat(64))
}

/// Kind of key, named resource, and expected status.
fn cases() -> Vec<(&'static str, &'static str, u16)> {
    let mut lines = MATRIX.lines().map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let head = lines.by_ref().find(|cells| cells.len() > 1).unwrap();
    let rows = lines.filter(|cells| cells.len() > 1);
    rows.flat_map(|cells| {
        let kind = cells[0];
        let cells = head[1..].iter().copied().zip(cells[1..].iter().map(|cell| cell.parse().unwrap()));
        cells.map(|(named, status)| (kind, named, status)).collect::<Vec<_>>()
    })
    .collect()
}

/// A server with one of each resource that can be named. `demo` is the endpoint `here`.
struct World {
    server: Direct,
    /// The template of `here` alone.
    template: String,
}

impl World {
    async fn start() -> Self {
        let server = Direct::start().await;
        let world = Self { server, template: String::new() };
        let shared = json!([world.server.endpoint]);
        for (name, endpoints) in [
            ("own", json!([])),
            ("shared", shared),
            ("every", json!("*")),
            ("foreign", json!([])),
            ("spare", json!([])),
        ] {
            let auth = json!({ "name": name, "username": "u", "password": "p", "endpoints": endpoints });
            let auth = world.make("/v1/containerregistryauth", &auth).await;
            let secret = json!({ "name": name, "value": "hush", "endpoints": endpoints });
            assert_eq!(world.server.ask("POST", "/v1/secrets", &secret.to_string()).await.status, 200);
            let used = if name == "own" || name == "foreign" { json!(auth) } else { Value::Null };
            let env = if used.is_null() { json!({}) } else { json!({ "TOKEN": { "secret": name } }) };
            let template = json!({
                "name": name, "containerRegistryAuthId": used, "workdir": code(name),
                "endpoints": endpoints, "env": env,
            });
            let template = world.make("/v1/templates", &template).await;
            let volume = json!({ "name": name, "size": 1, "endpoints": endpoints });
            let volume = world.make("/v1/networkvolumes", &volume).await;
            let slug = match name {
                "own" => "demo",
                "foreign" => "other",
                _ => continue,
            };
            let body = json!({ "templateId": template, "networkVolumeId": volume }).to_string();
            assert_eq!(world.server.ask("PATCH", &format!("/v1/endpoints/{slug}"), &body).await.status, 200);
        }
        let template = world.id_of(Resource::Template, "own").await;
        Self { template, ..world }
    }

    async fn make(&self, path: &str, body: &Value) -> String {
        let made = self.server.ask("POST", path, &body.to_string()).await;
        assert_eq!(made.status, 200, "{made:?}");
        made.json()["id"].as_str().unwrap().to_owned()
    }

    /// The id of the resource with this name in [`MATRIX`].
    async fn id_of(&self, resource: Resource, name: &str) -> String {
        let path = match resource {
            Resource::Template => "/v1/templates",
            Resource::NetworkVolume => "/v1/networkvolumes",
            Resource::RegistryAuth => "/v1/containerregistryauth",
            Resource::Code | Resource::Endpoint => return code(name),
            Resource::Secret => return name.to_owned(),
        };
        let all = self.server.ask("GET", path, "").await.json();
        let found = all.as_array().unwrap().iter().find(|one| one["name"] == name);
        found.map_or("nosuchthing".to_owned(), |one| one["id"].as_str().unwrap().to_owned())
    }

    async fn key(&self, kind: &str) -> String {
        let (here, elsewhere) = (vec![self.server.endpoint], vec![self.server.other]);
        let scope = |word: &str| match word {
            "manage" => KeyScope::manage_all(),
            "manage here" => KeyScope::Manage { endpoint_ids: here.clone() },
            "manage elsewhere" => KeyScope::Manage { endpoint_ids: elsewhere.clone() },
            "read here" => KeyScope::Read { endpoint_ids: here.clone() },
            "read" => KeyScope::Read { endpoint_ids: Vec::new() },
            "jobs" => KeyScope::Jobs { endpoint_ids: Vec::new() },
            other => panic!("{other}"),
        };
        let scopes = kind.split(", ").map(scope).collect();
        let minted = mint_key(kind, scopes, longshore_model::Millis(0)).unwrap();
        self.server.engine.keys().put(minted.record).await.unwrap();
        minted.text
    }

    /// Sends `field` with `value` to the endpoint `here` or its template.
    async fn send(&self, row: &Row, way: &str, value: &Value, key: &str) -> Vec<Reply> {
        let id =
            if row.table == "endpoint" { self.server.endpoint.to_string() } else { self.template.clone() };
        let path = format!("/v1/{}s/{id}", row.table);
        let body = json!({ row.field: value }).to_string();
        let send = async |method, path: &str, body: String| {
            self.server.send(request(method, path, Some(key), body)).await
        };
        if way == "deploy" {
            let path = format!("/v1/endpoints/{}/deploy", self.server.endpoint);
            let body = json!({ row.table: { row.field: value } }).to_string();
            return vec![send("POST", &path, body).await];
        }
        let Some(mutation) = way.strip_prefix("graphql:") else {
            return vec![
                send("PATCH", &path, body.clone()).await,
                send("POST", &format!("{path}/update"), body).await,
            ];
        };
        let id_field = if mutation == "updateEndpointTemplate" { "endpointId" } else { "id" };
        let query = format!("mutation M($in: X!) {{ {mutation}(input: $in) {{ id }} }}");
        let variables = json!({ "in": { row.field: value, id_field: id } });
        vec![send("POST", "/graphql", json!({ "query": query, "variables": variables }).to_string()).await]
    }

    async fn seen(&self) -> Vec<bytes::Bytes> {
        self.server.content().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_names_what_its_endpoints_use_or_share_and_nothing_else() {
    let mut tried = 0;
    // A world in which nothing has been changed yet: a refusal leaves it to the next case.
    let mut unchanged = None;
    for row in rows().iter().filter(|row| row.ways != ["operator"]) {
        let resource = tables()
            .iter()
            .find(|(table, _)| *table == row.table)
            .and_then(|(_, fields)| fields.iter().find(|field| field.name == row.field)?.names)
            .unwrap();
        for way in &row.ways {
            for (kind, named, status) in cases() {
                let is_code = resource == Resource::Code;
                let expected = match (kind, named, status) {
                    (_, "shared" | "every", 200) if is_code && kind != "manage" => 401,
                    _ => status,
                };
                let world = match unchanged.take() {
                    Some(world) => world,
                    None => World::start().await,
                };
                let id = world.id_of(resource, named).await;
                let value = match row.field {
                    "env" if way.starts_with("graphql") => json!([{ "key": "T", "value": { "secret": id } }]),
                    "env" => json!({ "T": { "secret": id } }),
                    field if field.ends_with("Ids") => json!([id]),
                    _ => json!(id),
                };
                let key = world.key(kind).await;
                let before = world.seen().await;
                for answer in world.send(row, way, &value, &key).await {
                    let what = format!("{kind} names {named} in {} by {way}: {answer:?}", row.field);
                    if way.starts_with("graphql") && expected == 400 {
                        // The response to a query that fails half-way.
                        assert_eq!(answer.status, 200, "{what}");
                        assert!(answer.json()["errors"].is_array(), "{what}");
                    } else {
                        assert_eq!(answer.status.as_u16(), expected, "{what}");
                    }
                    if expected == 401 {
                        assert_eq!(answer.code(), "unauthorized", "{what}");
                    }
                    tried += 1;
                }
                if expected != 200 {
                    assert_eq!(world.seen().await, before, "{kind} changed something with {named}");
                    unchanged = Some(world);
                }
            }
        }
    }
    assert!(tried > 500, "only {tried}");
}

#[tokio::test(start_paused = true)]
async fn only_a_key_for_all_says_with_whom_something_is_shared() {
    let world = World::start().await;
    let path = format!("/v1/templates/{}", world.template);
    for (kind, status) in [("manage here", 401), ("manage here, read", 401), ("manage", 200)] {
        let key = world.key(kind).await;
        for value in [json!([]), json!("*"), json!([world.server.endpoint])] {
            let body = json!({ "endpoints": value }).to_string();
            let answer = world.server.send(request("PATCH", &path, Some(&key), body)).await;
            assert_eq!(answer.status, status, "{kind}: {answer:?}");
        }
    }
    // Other endpoints that share a resource are shown to a key for all endpoints only.
    let both = json!({ "endpoints": ["demo", "other"] }).to_string();
    assert_eq!(world.server.ask("PATCH", &path, &both).await.status, 200);
    let own = json!([world.server.endpoint]);
    let all = json!([world.server.endpoint, world.server.other]);
    for (kind, expected) in [("manage here", own), ("manage", all)] {
        let key = world.key(kind).await;
        let get = request("GET", "/v1/endpoints/demo?includeTemplate=true", Some(&key), "");
        assert_eq!(world.server.send(get).await.json()["template"]["endpoints"], expected, "{kind}");
        let change = request("PATCH", &path, Some(&key), r#"{"readme":"r"}"#);
        assert_eq!(world.server.send(change).await.json()["endpoints"], expected, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_template_is_changed_by_keys_that_manage_every_endpoint_with_it() {
    let world = World::start().await;
    let (own, foreign) = (world.template.clone(), world.id_of(Resource::Template, "foreign").await);
    let (spare, shared) =
        (world.id_of(Resource::Template, "spare").await, world.id_of(Resource::Template, "shared").await);
    let here = world.key("manage here").await;
    let change = async |id: &str, key: &str| {
        let path = format!("/v1/templates/{id}");
        world.server.send(request("PATCH", &path, Some(key), r#"{"readme":"mine"}"#)).await.status.as_u16()
    };
    assert_eq!(change(&own, &here).await, 200);
    for id in [&foreign, &spare, &shared, &"nosuchtemplate".to_owned()] {
        assert_eq!(change(id, &here).await, 401, "{id}");
    }
    // A name that is taken is refused without further details.
    let path = format!("/v1/templates/{own}");
    let taken = world.server.send(request("PATCH", &path, Some(&here), r#"{"name":"foreign"}"#)).await;
    assert_eq!(taken.status, 400, "{taken:?}");
    assert!(!String::from_utf8_lossy(&taken.body).contains(&foreign), "{taken:?}");
    let taken =
        world.server.send(request("PATCH", "/v1/endpoints/demo", Some(&here), r#"{"slug":"Other"}"#)).await;
    assert_eq!(taken.status, 400, "{taken:?}");
    assert!(!String::from_utf8_lossy(&taken.body).contains(world.server.other.as_str()), "{taken:?}");
    // Holds from the moment on that another owner's endpoint uses the resource, too.
    let body = json!({ "templateId": own }).to_string();
    assert_eq!(world.server.ask("PATCH", "/v1/endpoints/other", &body).await.status, 200);
    assert_eq!(change(&own, &here).await, 401);
    assert_eq!(change(&own, &world.key("manage").await).await, 200);
    let delete = request("DELETE", &format!("/v1/templates/{own}"), Some(&here), "");
    assert_eq!(world.server.send(delete).await.status, 401);
}

/// The status of a GET of a template, per kind of key, and the names of the templates in its list; `-`: the list is 401.
const READS: &str = "
                           | own | shared | every | foreign | spare | missing | list
    manage                 | 200 | 200    | 200   | 200     | 200   | 404     | every foreign own shared spare t
    read                   | 200 | 200    | 200   | 200     | 200   | 404     | every foreign own shared spare t
    manage here            | 200 | 401    | 401   | 401     | 401   | 401     | own
    manage here, jobs      | 200 | 401    | 401   | 401     | 401   | 401     | own
    manage here, read      | 200 | 200    | 200   | 200     | 200   | 404     | every foreign own shared spare t
    manage elsewhere       | 401 | 401    | 401   | 200     | 401   | 401     | foreign
    read here              | 401 | 401    | 401   | 401     | 401   | 401     | -
    jobs                   | 401 | 401    | 401   | 401     | 401   | 401     | -
";

#[tokio::test(start_paused = true)]
async fn a_key_reads_the_templates_that_it_may_change() {
    let world = World::start().await;
    let mut rows = READS.lines().map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let head = rows.by_ref().find(|cells| cells.len() > 1).unwrap();
    for cells in rows.filter(|cells| cells.len() > 1) {
        let kind = cells[0];
        let key = world.key(kind).await;
        let send = async |method, path: &str, body: String| {
            world.server.send(request(method, path, Some(&key), body)).await
        };
        for (named, status) in head[1..7].iter().zip(&cells[1..7]) {
            let path = format!("/v1/templates/{}", world.id_of(Resource::Template, named).await);
            let answer = send("GET", &path, String::new()).await;
            assert_eq!(answer.status.as_str(), *status, "{kind} reads {named}: {answer:?}");
            if answer.status == 200 {
                assert_eq!(answer.json()["name"], *named);
            }
        }
        let listed = send("GET", "/v1/templates", String::new()).await;
        let query = json!({ "query": "{ myself { id podTemplates { name } } }" }).to_string();
        let queried = send("POST", "/graphql", query).await;
        if cells[7] == "-" {
            assert_eq!((listed.status.as_u16(), queried.status.as_u16()), (401, 401), "{kind}");
            continue;
        }
        assert_eq!(names(&listed.json()), cells[7], "{kind}");
        assert_eq!(names(&queried.json()["data"]["myself"]["podTemplates"]), cells[7], "{kind}");
    }
    // Another owner's endpoint uses the template too.
    let body = json!({ "templateId": world.template }).to_string();
    assert_eq!(world.server.ask("PATCH", "/v1/endpoints/other", &body).await.status, 200);
    let key = world.key("manage here").await;
    let own = format!("/v1/templates/{}", world.template);
    assert_eq!(world.server.send(request("GET", &own, Some(&key), "")).await.status, 401);
    let listed = world.server.send(request("GET", "/v1/templates", Some(&key), "")).await;
    assert_eq!(listed.json(), json!([]));
}

/// The names of the listed templates, sorted.
fn names(list: &Value) -> String {
    let names = list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap());
    names.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn a_query_needs_what_its_request_to_the_management_api_needs() {
    let world = World::start().await;
    let here = world.server.endpoint;
    let change =
        format!("mutation {{ saveEndpoint(input: {{ id: \"{here}\", idleTimeout: 11 }}) {{ id }} }}");
    let foreign = change.replace(here.as_str(), world.server.other.as_str());
    let rename = format!(
        "mutation {{ saveTemplate(input: {{ id: \"{}\", readme: \"r\" }}) {{ id }} }}",
        world.template
    );
    let delete = format!("mutation {{ deleteEndpoint(id: \"{here}\") }}");
    let whole = [
        "{ gpuTypes { id } }",
        "{ myself { networkVolumes { id } } }",
        "{ pod(input: { podId: \"w\" }) { id } }",
        "mutation { saveTemplate(input: { name: \"new\", imageName: \"i\" }) { id } }",
        "mutation { deleteTemplate(templateName: \"own\") }",
        foreign.as_str(),
    ];
    let own = ["{ myself { id podTemplates { id } } }", change.as_str(), rename.as_str(), delete.as_str()];
    let ask = async |kind: &str, query: &str| {
        let body = json!({ "query": query }).to_string();
        world.server.send(request("POST", "/graphql", Some(&world.key(kind).await), body)).await
    };
    // The list of endpoints has those that the key may read.
    let lists = ["{ endpoints { id } }", "{ myself { endpoints { id } } }"];
    for query in whole.iter().chain(&own).chain(&lists) {
        assert_eq!(ask("jobs", query).await.status, 401, "{query}");
    }
    for query in own[1..].iter().chain(&whole[..3]) {
        assert_eq!(ask("read here", query).await.status, 401, "{query}");
    }
    for kind in ["read here", "manage here"] {
        let data = [ask(kind, lists[0]).await.json(), ask(kind, lists[1]).await.json()];
        let endpoints = [&data[0]["data"]["endpoints"], &data[1]["data"]["myself"]["endpoints"]];
        assert_eq!(endpoints, [&json!([{ "id": here }]); 2], "{kind}: {data:?}");
    }
    for query in whole {
        assert_eq!(ask("manage here", query).await.status, 401, "{query}");
    }
    for query in own {
        let answer = ask("manage here", query).await;
        assert_eq!(answer.status, 200, "{query}: {answer:?}");
        assert!(answer.json()["errors"].is_null(), "{query}: {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_something_is_shared_with_is_checked_and_kept_as_ids() {
    let world = World::start().await;
    let volume = format!("/v1/networkvolumes/{}", world.id_of(Resource::NetworkVolume, "own").await);
    let auth = format!("/v1/containerregistryauth/{}", world.id_of(Resource::RegistryAuth, "own").await);
    let template = format!("/v1/templates/{}", world.template);
    let id = world.server.endpoint;
    let secret = "/v1/secrets/own".to_owned();
    for path in [&volume, &auth, &template, &secret] {
        for (sent, kept) in [
            (json!(["demo", id]), json!([id])),
            (json!("*"), json!(["*"])),
            (json!(["*", "*"]), json!(["*"])),
            (json!([]), json!([])),
        ] {
            let answer = world.server.ask("PATCH", path, &json!({ "endpoints": sent }).to_string()).await;
            assert_eq!((answer.status.as_u16(), &answer.json()["endpoints"]), (200, &kept), "{path}");
            assert_eq!(world.server.ask("GET", path, "").await.json()["endpoints"], kept);
        }
        for bad in
            [json!(["missing"]), json!(["*", "demo"]), json!("demo"), json!([1]), json!(null), json!({})]
        {
            let answer = world.server.ask("PATCH", path, &json!({ "endpoints": bad }).to_string()).await;
            assert_eq!((answer.status.as_u16(), answer.code().as_str()), (400, "bad_field"), "{path} {bad}");
        }
    }
    // A deleted endpoint stays in the list, which can be sent back; the endpoint has no owner.
    let body = json!({ "endpoints": ["other"] }).to_string();
    assert_eq!(world.server.ask("PATCH", &volume, &body).await.status, 200);
    assert_eq!(world.server.ask("DELETE", "/v1/endpoints/other", "").await.status, 204);
    let kept = world.server.ask("GET", &volume, "").await.json()["endpoints"].clone();
    assert_eq!(kept, json!([world.server.other]));
    let answer = world.server.ask("PATCH", &volume, &json!({ "endpoints": kept }).to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn every_field_that_names_something_has_a_row() {
    let rows = rows();
    let known: BTreeSet<_> = rows.iter().map(|row| (row.table, row.field, row.resource.to_owned())).collect();
    let mut found = BTreeSet::new();
    for (table, fields) in tables() {
        for field in fields.iter().filter(|field| field.access != Access::Read) {
            if let Some(resource) = field.names {
                found.insert((table, field.name, format!("{resource:?}")));
            }
            let looks_so = field.name.ends_with("Id") || field.name.ends_with("Ids");
            let says_so = field.names.is_some() || PLAIN.contains(&field.name);
            assert!(
                !looks_so || says_so,
                "`{}` of {table}: say what it names, or that it is plain",
                field.name
            );
        }
    }
    assert_eq!(found, known, "add the new field to the table above, with how it can be sent");
}

#[test]
fn every_mutation_that_names_something_has_a_row() {
    let named: BTreeSet<_> = rows()
        .iter()
        .flat_map(|row| row.ways.clone())
        .filter_map(|way| way.strip_prefix("graphql:"))
        .collect();
    let others = [
        "deleteEndpoint",
        "deleteRegistryAuth",
        "deleteTemplate",
        "deployCpuPod",
        "podFindAndDeployOnDemand",
        "podResume",
        "podStop",
        "podTerminate",
        "saveRegistryAuth",
        "updateRegistryAuth",
        "updateUserSettings",
    ];
    let known: BTreeSet<_> = named.into_iter().chain(others).collect();
    assert_eq!(graphql::mutations().collect::<BTreeSet<_>>(), known, "say what the new mutation can name");
}
