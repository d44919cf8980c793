//! What each route needs, and what each kind of key permits.

use std::collections::BTreeSet;

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
pub(super) struct KeyKind {
    pub(super) name: &'static str,
    pub(super) may: BTreeSet<&'static str>,
}

pub(super) fn kinds() -> Vec<KeyKind> {
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
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) pattern: &'static str,
    pub(super) takes: &'static str,
}

/// The routes of the router.
pub(super) fn routes() -> Vec<Route> {
    rows_of(ROUTES)
}

/// The routes of the router, and the addresses whose requests are forwarded.
pub(super) fn addresses() -> Vec<Route> {
    [rows_of(ROUTES), rows_of(FORWARDED)].concat()
}

fn rows_of(table: &'static str) -> Vec<Route> {
    let rows = table.lines().map(|row| row.split_ascii_whitespace().collect::<Vec<_>>());
    let rows = rows.filter(|cells| !cells.is_empty());
    rows.map(|cells| Route { method: cells[0], pattern: cells[1], takes: cells[2] }).collect()
}

/// Method and path of every route.
pub(in crate::tests) fn patterns() -> Vec<(&'static str, &'static str)> {
    routes().iter().map(|route| (route.method, route.pattern)).collect()
}
