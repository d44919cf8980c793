//! `/graphql`: the queries of real clients, and hostile ones.

use serde_json::{Value, json};

use super::direct::{Direct, request};

async fn ask(server: &Direct, query: &str) -> Value {
    asked(server, json!({ "query": query })).await
}

async fn asked(server: &Direct, body: Value) -> Value {
    server.ask("POST", "/graphql", &body.to_string()).await.json()
}

fn message(answer: &Value) -> &str {
    answer["errors"][0]["message"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_template_and_an_endpoint_are_saved_changed_and_deleted() {
    let server = Direct::start().await;
    let made = ask(
        &server,
        r#"mutation { saveTemplate(input: { name: "mine", imageName: "i", dockerArgs: "python3 -u 'my main.py'",
            containerDiskInGb: 5, volumeInGb: 0, ports: "8888/http,22/tcp", env: [{ key: "A", value: "b" }],
            isServerless: true, containerRegistryAuthId : "", startSsh: true, isPublic: false, readme: "" })
            { id dockerArgs ports env { key value } __typename } }"#,
    )
    .await;
    let template = &made["data"]["saveTemplate"];
    assert!(template.is_object(), "{made}");
    assert_eq!(template["dockerArgs"], "python3 -u 'my main.py'");
    assert_eq!(template["env"], json!([{ "key": "A", "value": "***" }]), "values are secrets");
    assert_eq!(
        (&template["ports"], &template["__typename"]),
        (&json!("8888/http,22/tcp"), &json!("PodTemplate"))
    );

    let made = asked(
        &server,
        json!({
            "query": "mutation Make($in: EndpointInput!, $not: Boolean = true) {
                made: saveEndpoint(input: $in) { ...all version @skip(if: $not) } }
                fragment all on Endpoint { id gpuIds workersMax flashBootType networkVolume { id } }",
            "variables": { "in": {
                "name": "e", "templateId": template["id"], "gpuIds": "AMPERE_16, NVIDIA L4", "workersMax": 0,
                "flashBootType": "FLASHBOOT", "locations": "", "networkVolumeId": "",
            } },
        }),
    )
    .await;
    let endpoint = &made["data"]["made"];
    let id = endpoint["id"].as_str().unwrap_or_else(|| panic!("{made}"));
    let expected = json!({
        "id": id, "gpuIds": "AMPERE_16,NVIDIA L4", "workersMax": 0, "flashBootType": "FLASHBOOT",
        "networkVolume": null,
    });
    assert_eq!(*endpoint, expected);

    let listed = ask(
        &server,
        "{ endpoints { id template { name } } myself { a: endpoints { template { name } } b: endpoints { id } } }",
    )
    .await;
    // The server has other resources of the same creation time.
    let has = |list: &Value, one: Value| list.as_array().is_some_and(|all| all.contains(&one));
    let (data, mine) = (&listed["data"], json!({ "name": "mine" }));
    assert!(has(&data["endpoints"], json!({ "id": id, "template": mine })), "{listed}");
    assert!(has(&data["myself"]["a"], json!({ "template": mine })), "{listed}");
    assert!(has(&data["myself"]["b"], json!({ "id": id })), "{listed}");

    let changed = format!(
        r#"mutation {{ saveEndpoint(input: {{ id: "{id}", idleTimeout: 9 }}) {{ idleTimeout name }} }}"#
    );
    let changed = ask(&server, &changed).await;
    assert_eq!(changed["data"]["saveEndpoint"], json!({ "idleTimeout": 9, "name": "e" }));
    let delete = format!(r#"mutation {{ deleteEndpoint(id: "{id}") deleteTemplate(templateName: "mine") }}"#);
    assert_eq!(
        ask(&server, &delete).await,
        json!({ "data": { "deleteEndpoint": null, "deleteTemplate": null } })
    );
    let left = ask(&server, "{ myself { endpoints { name } podTemplates { name } } }").await;
    assert!(!left.to_string().contains(r#""e""#) && !left.to_string().contains("mine"), "{left}");
}

#[tokio::test(start_paused = true)]
async fn refusals_are_those_of_the_management_api() {
    let server = Direct::start().await;
    for (query, part) in [
        (r#"mutation { saveEndpoint(input: { name: "x" }) { id } }"#, "`templateId` is required"),
        (
            r#"mutation { saveTemplate(input: { name: "x", imageNam: "i" }) { id } }"#,
            "the nearest known field is `imageName`",
        ),
        (
            r#"mutation { saveTemplate(input: { name: "x", env: [{ key: "A" }] }) { id } }"#,
            "`env.A` must be a string",
        ),
        (
            r#"mutation { saveTemplate(input: { name: "x", env: [{ key: "1A", value: "hush" }] }) { id } }"#,
            "the name of a variable must be of the form",
        ),
        (r#"mutation { deleteEndpoint(id: "../templates") }"#, "no endpoint has this id"),
        (r#"mutation { podStop(input: { podId: "x" }) { id } }"#, "make an endpoint instead"),
        (r#"{ pod(input: { podId: "x" }) { id } }"#, "no worker has this id"),
        (
            "{ myself { endpoint { id } } }",
            "`endpoint` is not a field of `User` here; the nearest known field is `endpoints`",
        ),
        ("{ myself }", "say which fields of `myself` to show"),
        ("{ myself { id { id } } }", "`id` has no fields"),
        ("{ __schema { types { name } } }", "not a field of `Query`"),
        ("{ myself { id ", "expected"),
        ("{ myself { ...x } } fragment x on User { ...x }", "nests deeper"),
        ("subscription { a }", "no subscriptions"),
        ("query A { myself { id } } query B { myself { id } }", "`operationName`"),
        ("{ pod(input: $x) { id } }", "`$x` is not declared"),
    ] {
        let answer = ask(&server, query).await;
        assert!(message(&answer).contains(part), "{query}: {answer}");
        assert!(answer["data"].is_null());
    }
    let wide = format!("{{ {} }}", "myself { id } ".repeat(11));
    assert!(message(&ask(&server, &wide).await).contains("10 root fields at most"));
    let deep = "{ a ".repeat(50);
    assert!(message(&ask(&server, &deep).await).contains("nests deeper"));
    let bomb = "{ ...a } fragment a on Q { ...b ...b ...b ...b ...b ...b ...b ...b } fragment b on Q { ...c ...c ...c ...c \
        ...c ...c ...c ...c } fragment c on Q { ...d ...d ...d ...d ...d ...d ...d ...d } fragment d on Q { a a a a a a }";
    assert!(message(&ask(&server, bomb).await).contains("500 fields at most"));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_may_only_look_changes_nothing() {
    let server = Direct::start().await;
    let reader = crate::mint_key(
        "reader",
        vec![longshore_model::KeyScope::Read { endpoint_ids: vec![] }],
        server.engine.now(),
    );
    let reader = reader.unwrap();
    server.engine.keys().put(reader.record).await.unwrap();
    let send = async |query: &str| {
        let body = json!({ "query": query }).to_string();
        server.send(request("POST", "/graphql", Some(&reader.text), body)).await
    };
    assert_eq!(send("{ myself { id endpoints { id } } }").await.status, 200);
    let refused = send(r#"mutation { saveTemplate(input: { name: "mine", imageName: "i" }) { id } }"#).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (401, "unauthorized".to_owned()));
}
