//! Every route with every kind of key: which requests are served; all others are 401 and reveal nothing.

mod forwarded;
mod references;
mod table;
mod world;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use longshore_model::KeyScope;

use super::direct::{Direct, Watched, request};
pub(super) use table::patterns;
use table::{addresses, kinds, routes};
use world::World;

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
    assert_eq!(found, known, "add the new route to the table in table.rs, with what it takes");
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
