//! The operator: creates, changes and deletes templates and endpoints, and publishes the endpoints.

mod records;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::sleep;

use crate::endpoints::{Endpoints, KnownEndpoint};
use crate::observation::{HttpRequest, HttpResponse, Party};
use crate::raw_http::{get, post, text_member};
use crate::rng::Rng;
use crate::scheduler::Process;
use crate::world::World;

/// Longest pause between two attempts, in ms.
const RETRY_MS_MAX: u64 = 3_000;
/// Longest pause of an endpoint, in ms.
const PAUSED_MS_MAX: u64 = 60_000;

struct Operator {
    world: World,
    rng: Rng,
    credential: String,
    endpoints: Endpoints,
    owned: Vec<OwnedEndpoint>,
    /// Number of endpoints to keep.
    endpoints_max: u64,
    /// Longest time between two changes, in ms.
    pause_ms_max: u64,
    /// Counter for unique names.
    names_used: u64,
}

/// An endpoint that the operator created.
struct OwnedEndpoint {
    id: Arc<str>,
    template: String,
    /// Whether the endpoint lives as long as the world.
    is_permanent: bool,
    workers_max: u64,
}

/// Starts the operator with this key.
pub fn start(world: &World, rng: &mut Rng, key: &str, endpoints: &Endpoints) -> Process {
    let mut rng = rng.fork();
    let mut operator = Operator {
        world: world.clone(),
        credential: format!("Bearer {key}"),
        endpoints: endpoints.clone(),
        owned: Vec::new(),
        endpoints_max: rng.range(1..=5),
        pause_ms_max: rng.skewed(1_000..=600_000),
        names_used: 0,
        rng,
    };
    let process = world.tasks.process();
    process.spawn(async move { operator.work().await });
    process
}

impl Operator {
    async fn work(&mut self) {
        while self.owned.is_empty() && !self.is_quiet() {
            self.create(true).await;
            self.pause(RETRY_MS_MAX).await;
        }
        let first = self.rng.range(0..=self.endpoints_max - 1);
        for _ in 0..first {
            let is_permanent = self.rng.chance(0.5);
            self.create(is_permanent).await;
        }
        loop {
            self.pause(self.pause_ms_max).await;
            if self.is_quiet() {
                return;
            }
            match self.rng.range(0..=9) {
                0..=1 => {
                    if (self.owned.len() as u64) < self.endpoints_max {
                        self.create(false).await;
                    }
                }
                2 => self.delete_one().await,
                3 => self.pause_one().await,
                4 => self.change_template().await,
                5 => self.change_to_new_template().await,
                6 => self.read_resources().await,
                _ => self.patch_one().await,
            }
        }
    }

    async fn create(&mut self, is_permanent: bool) {
        self.names_used += 1;
        let Some(template) = self.create_template().await else { return };
        let new = records::endpoint(&mut self.rng, self.names_used, &template);
        let request = post("/v1/endpoints".to_owned(), &self.credential, new.body);
        let Some(answer) = self.ask(request).await.filter(|answer| answer.status == 200) else { return };
        let Some(id) = text_member(&answer.body, "id").map(Arc::<str>::from) else { return };
        self.owned.push(OwnedEndpoint {
            id: id.clone(),
            template,
            is_permanent,
            workers_max: new.workers_max,
        });
        let external = if new.is_external { self.variables(&id).await } else { None };
        self.endpoints.publish(KnownEndpoint { id, slug: new.slug.map(Into::into), external });
    }

    async fn create_template(&mut self) -> Option<String> {
        let request = post("/v1/templates".to_owned(), &self.credential, records::template(self.names_used));
        let answer = self.ask(request).await.filter(|answer| answer.status == 200)?;
        text_member(&answer.body, "id").map(str::to_owned)
    }

    /// Returns the environment variables of external workers.
    async fn variables(&mut self, endpoint: &str) -> Option<Arc<BTreeMap<String, String>>> {
        #[derive(Deserialize)]
        struct Token {
            env: BTreeMap<String, String>,
        }
        let path = format!("/v1/endpoints/{endpoint}/worker-token");
        let answer = self.repeat_until_accepted(|credential| post(path.clone(), credential, "")).await?;
        serde_json::from_slice::<Token>(&answer.body).ok().map(|token| Arc::new(token.env))
    }

    async fn delete_one(&mut self) {
        let deletable: Vec<usize> =
            (0..self.owned.len()).filter(|at| !self.owned[*at].is_permanent).collect();
        if deletable.is_empty() {
            return;
        }
        let owned = self.owned.remove(*self.rng.pick(&deletable));
        let drain = if self.rng.chance(0.5) { "?drain=true" } else { "" };
        let path = format!("/v1/endpoints/{}{drain}", owned.id);
        // Some parties learn of the deletion only afterwards.
        let withdraws_first = self.rng.chance(0.5);
        if withdraws_first {
            self.endpoints.withdraw(&owned.id);
        }
        self.repeat_until_accepted(|credential| HttpRequest {
            method: "DELETE",
            ..get(path.clone(), credential)
        })
        .await;
        self.endpoints.withdraw(&owned.id);
        if self.rng.chance(0.5) {
            let path = format!("/v1/templates/{}", owned.template);
            let request = HttpRequest { method: "DELETE", ..get(path, &self.credential) };
            self.ask(request).await;
        }
    }

    /// Pauses an endpoint for up to [`PAUSED_MS_MAX`]. The pause ends even when the faults stop.
    async fn pause_one(&mut self) {
        let Some((id, _)) = self.pick() else { return };
        self.patch(&id, records::workers(0, 0)).await;
        self.pause(PAUSED_MS_MAX).await;
        let Some(owned) = self.owned.iter().find(|owned| owned.id == id) else { return };
        let workers = records::workers(0, owned.workers_max);
        let path = format!("/v1/endpoints/{id}");
        self.repeat_until_accepted(|credential| patch(path.clone(), credential, workers.clone())).await;
    }

    async fn patch_one(&mut self) {
        let Some((id, _)) = self.pick() else { return };
        let workers_max = self.rng.range(1..=5);
        let body = match self.rng.range(0..=2) {
            0 => records::workers(self.rng.range(0..=workers_max.min(2)), workers_max),
            _ => records::change(&mut self.rng),
        };
        let is_size = body.contains("workersMax");
        let answer = self.patch(&id, body).await;
        if is_size
            && answer.is_some_and(|answer| answer.status == 200)
            && let Some(owned) = self.owned.iter_mut().find(|owned| owned.id == id)
        {
            owned.workers_max = workers_max;
        }
    }

    /// Changes a template, which replaces its workers.
    async fn change_template(&mut self) {
        let Some((_, template)) = self.pick() else { return };
        self.names_used += 1;
        let request = patch(
            format!("/v1/templates/{template}"),
            &self.credential,
            records::environment(self.names_used),
        );
        self.ask(request).await;
    }

    async fn change_to_new_template(&mut self) {
        let Some((id, _)) = self.pick() else { return };
        self.names_used += 1;
        let Some(template) = self.create_template().await else { return };
        let answer = self.patch(&id, format!(r#"{{"templateId":"{template}"}}"#)).await;
        if answer.is_some_and(|answer| answer.status == 200)
            && let Some(owned) = self.owned.iter_mut().find(|owned| owned.id == id)
        {
            owned.template = template;
        }
    }

    /// Reads resources, sometimes missing or forbidden ones.
    async fn read_resources(&mut self) {
        let id = self.pick().map_or_else(|| "nothing".into(), |(id, _)| id);
        let credential = self.credential.clone();
        let request = match self.rng.range(0..=5) {
            0 => get("/v1/endpoints?includeWorkers=true&includeTemplate=true".to_owned(), &credential),
            1 => get("/v1/templates".to_owned(), &credential),
            2 => patch(format!("/v1/endpoints/{id}"), &credential, r#"{"workersmax":1}"#.to_owned()),
            3 => patch(
                format!("/v1/endpoints/{id}"),
                &credential,
                r#"{"workersMin":9999,"workersMax":1}"#.to_owned(),
            ),
            4 => get("/v1/endpoints/nothing".to_owned(), &credential),
            _ => get(format!("/v1/endpoints/{id}?includeWorkers=true"), &credential),
        };
        self.ask(request).await;
    }

    async fn patch(&mut self, id: &str, body: String) -> Option<HttpResponse> {
        let request = patch(format!("/v1/endpoints/{id}"), &self.credential, body);
        self.ask(request).await
    }

    /// Repeats the request until the server accepts or refuses it.
    async fn repeat_until_accepted(&mut self, request: impl Fn(&str) -> HttpRequest) -> Option<HttpResponse> {
        loop {
            let request = request(&self.credential);
            match self.ask(request).await {
                Some(answer) if answer.status < 500 => return Some(answer),
                _ => self.pause(RETRY_MS_MAX).await,
            }
        }
    }

    async fn ask(&self, request: HttpRequest) -> Option<HttpResponse> {
        self.world.network.ask(Party::Operator, request).await.ok()
    }

    /// Returns a random endpoint of the operator with its template.
    fn pick(&mut self) -> Option<(Arc<str>, String)> {
        (!self.owned.is_empty()).then(|| {
            let owned = self.rng.pick(&self.owned);
            (owned.id.clone(), owned.template.clone())
        })
    }

    async fn pause(&mut self, ms_max: u64) {
        let ms = self.rng.skewed(1..=ms_max);
        sleep(Duration::from_millis(ms)).await;
    }

    fn is_quiet(&self) -> bool {
        self.world.faults.are_over()
    }
}

fn patch(path: String, credential: &str, body: String) -> HttpRequest {
    HttpRequest { method: "PATCH", ..post(path, credential, body) }
}
