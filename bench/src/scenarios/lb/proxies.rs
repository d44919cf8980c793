//! The proxies that are compared, each in front of the same worker.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::super::ScenarioContext;
use crate::http::Request;
use crate::program::{CpuPlacement, Program, free_address};
use crate::server::{ForwardedEndpoint, Server};

/// A way to the worker.
pub(super) struct Proxy {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    /// The process whose resources count.
    pub(super) pid: u32,
    /// What paths have before that of the worker.
    prefix: String,
    /// The value of `Authorization`; empty without a key.
    authorization: String,
    _program: Option<Program>,
    served: Option<(Server, ForwardedEndpoint)>,
    _folder: Option<tempfile::TempDir>,
}

impl Proxy {
    pub(super) fn get(&self, path: &str) -> Vec<u8> {
        self.with_key(Request::get(format!("{}{path}", self.prefix))).bare()
    }

    pub(super) fn post(&self, path: &str) -> Vec<u8> {
        self.with_key(Request::post(format!("{}{path}", self.prefix))).with_body(b"{}")
    }

    pub(super) fn upgrade(&self, path: &str) -> Vec<u8> {
        let request = self.with_key(Request::get(format!("{}{path}", self.prefix)));
        let request = request.header("Connection", "Upgrade").header("Upgrade", "websocket");
        request
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
            .bare()
    }

    fn with_key(&self, request: Request) -> Request {
        if self.authorization.is_empty() {
            request
        } else {
            request.header("Authorization", &self.authorization)
        }
    }

    /// The value of `Authorization` in its requests.
    pub(super) fn authorization(&self) -> &str {
        &self.authorization
    }

    /// The server and its endpoint; `None` for another proxy.
    pub(super) fn served(&self) -> Option<(&Server, &ForwardedEndpoint)> {
        self.served.as_ref().map(|(server, endpoint)| (server, endpoint))
    }
}

/// The worker without a proxy.
pub(super) fn direct(context: &ScenarioContext, worker: &Path) -> Result<Proxy, String> {
    let address = free_address()?;
    let mut command = Command::new(worker);
    command.args(["floor", "http-worker"]).env("PORT", address.port().to_string());
    started("direct", context, &mut command, address, None)
}

/// A load-balancing endpoint with this number of workers, which the server starts.
pub(super) fn longshore(context: &ScenarioContext, worker: &Path, workers: u32) -> Result<Proxy, String> {
    let server = context.start_server()?;
    let endpoint = server.forwarded_endpoint(worker, workers)?;
    Ok(Proxy {
        name: "longshore",
        address: server.address(),
        pid: server.pid(),
        prefix: endpoint.prefix.clone(),
        authorization: endpoint.authorization.clone(),
        _program: None,
        served: Some((server, endpoint)),
        _folder: None,
    })
}

/// What nginx does with a request, beside forwarding it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NginxWork {
    /// It forwards the request, and does nothing else with it.
    Forward,
    /// What a load-balancing endpoint does: check the key and remove it, name the client and the request to the worker, and the
    /// request to the client.
    CheckAndMark,
}

impl NginxWork {
    fn name(self) -> &'static str {
        match self {
            Self::Forward => "nginx_bare",
            Self::CheckAndMark => "nginx",
        }
    }

    /// The settings for a location, beside those that every forwarding needs.
    fn settings(self) -> &'static str {
        match self {
            Self::Forward => "",
            Self::CheckAndMark => {
                "if ($is_known = 0) { return 401; } proxy_set_header Authorization ''; \
                 proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme; \
                 proxy_set_header X-Forwarded-Host $http_host; proxy_set_header X-Request-ID $request_id; \
                 add_header X-Request-ID $request_id;"
            }
        }
    }
}

/// One process of nginx, with connections to the worker that stay open. `authorization` is the value that it accepts, if it
/// checks any.
pub(super) fn nginx(
    context: &ScenarioContext,
    worker: &Proxy,
    work: NginxWork,
    authorization: &str,
) -> Result<Proxy, String> {
    let address = free_address()?;
    let folder = folder(context)?;
    let path = folder.path().join("nginx.conf");
    let here = folder.path().display();
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {here}/{name};"))
        .join(" ");
    let settings = format!(
        "daemon off; master_process off; pid {here}/pid; error_log {here}/log error;\n\
         events {{ worker_connections 19500; }}\n\
         http {{ access_log off; {paths} keepalive_requests 1000000000;\n\
         map_hash_bucket_size 128; map $http_upgrade $how {{ default upgrade; '' ''; }}\n\
         map $http_authorization $is_known {{ default 0; \"{authorization}\" 1; }}\n\
         upstream worker {{ server {}; keepalive 256; keepalive_requests 1000000000; }}\n\
         server {{ listen {address} backlog=4096; location / {{ proxy_pass http://worker; proxy_http_version 1.1;\n\
         proxy_buffering off; proxy_read_timeout 600s; proxy_set_header Connection $how;\n\
         proxy_set_header Upgrade $http_upgrade; {} }} }} }}\n",
        worker.address,
        work.settings(),
    );
    fs::write(&path, settings).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    let mut command = Command::new("nginx");
    command.arg("-c").arg(&path).arg("-e").arg(folder.path().join("log"));
    let mut proxy = started(work.name(), context, &mut command, address, Some(folder))?;
    authorization.clone_into(&mut proxy.authorization);
    Ok(proxy)
}

/// `HAProxy` with one thread.
pub(super) fn haproxy(context: &ScenarioContext, worker: &Proxy) -> Result<Proxy, String> {
    let address = free_address()?;
    let folder = folder(context)?;
    let path = folder.path().join("haproxy.cfg");
    let settings = format!(
        "global\n  nbthread 1\n  maxconn 9500\n\
         defaults\n  mode http\n  timeout connect 5s\n  timeout client 600s\n  timeout server 600s\n  timeout tunnel 600s\n\
         frontend in\n  bind {address} backlog 4096\n  default_backend workers\n\
         backend workers\n  http-reuse always\n  server worker {} maxconn 9500\n",
        worker.address
    );
    fs::write(&path, settings).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    let mut command = Command::new("haproxy");
    command.arg("-db").arg("-f").arg(&path);
    started("haproxy", context, &mut command, address, Some(folder))
}

fn folder(context: &ScenarioContext) -> Result<tempfile::TempDir, String> {
    tempfile::tempdir_in(&context.data).map_err(|error| format!("cannot create a directory: {error}"))
}

fn started(
    name: &'static str,
    context: &ScenarioContext,
    command: &mut Command,
    address: SocketAddr,
    folder: Option<tempfile::TempDir>,
) -> Result<Proxy, String> {
    // Debian keeps them where only root looks for programs.
    let path = std::env::var("PATH").unwrap_or_default();
    let mut program = Program::start(
        command.env("PATH", format!("{path}:/usr/sbin")),
        CpuPlacement::Measured,
        context.cores,
    )?;
    program.wait_listening(address)?;
    let pid = program.pid();
    Ok(Proxy {
        name,
        address,
        pid,
        prefix: String::new(),
        authorization: String::new(),
        _program: Some(program),
        served: None,
        _folder: folder,
    })
}
