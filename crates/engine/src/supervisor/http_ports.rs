//! The ports of a worker that serves HTTP.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use longshore_launch::Launcher;
use longshore_model::{Endpoint, EnvValue, HttpPorts, Template};

/// The port of a container with an address of its own.
const CONTAINER_PORT: u16 = 8_000;
/// The ports that workers of one computer get. No connection of a client takes one of them: Linux takes those above 32767.
const FREE_PORTS: RangeInclusive<u16> = 20_000..=29_999;
/// How many ports are tried.
const TRIES: u32 = 256;
/// The number of ports that were given last, and are not given again: their workers may not listen yet.
const RECENT_MAX: usize = 1_024;

/// The variable with the port of the requests.
pub(super) const PORT: &str = "PORT";
/// The variable with the port of the health check.
pub(super) const PORT_HEALTH: &str = "PORT_HEALTH";

/// The ports of the next worker of an endpoint; `None` for an endpoint with a queue.
///
/// # Errors
///
/// No port is free, or `PORT` of the template's environment is no port.
pub(super) fn http_ports(
    endpoint: &Endpoint,
    template: &Template,
    launcher: &dyn Launcher,
    entropy: impl Fn() -> u128,
) -> Result<Option<HttpPorts>, String> {
    let Some(lb) = endpoint.balances() else { return Ok(None) };
    let port = match (lb.port, in_environment(template, PORT)?) {
        (Some(port), _) | (None, Some(port)) => port,
        (None, None) if launcher.shares_ports() => free_port(&entropy)?,
        (None, None) => CONTAINER_PORT,
    };
    let health_port = lb.health_port.or(in_environment(template, PORT_HEALTH)?).unwrap_or(port);
    Ok(Some(HttpPorts { port, health_port }))
}

/// The port in a variable of the template; `None` without the variable, and if a secret has its value.
fn in_environment(template: &Template, name: &str) -> Result<Option<u16>, String> {
    match template.env.get(name) {
        Some(EnvValue::Text(text)) => match text.parse().ok().filter(|port| *port > 0) {
            Some(port) => Ok(Some(port)),
            None => Err(format!("`env.{name}` of template `{}` is no port; use 1 to 65535", template.name)),
        },
        Some(EnvValue::Secret(_)) | None => Ok(None),
    }
}

/// A port of this computer on which no program listens, and that no worker got lately.
fn free_port(entropy: &impl Fn() -> u128) -> Result<u16, String> {
    static RECENT: Mutex<VecDeque<u16>> = Mutex::new(VecDeque::new());
    let count = u128::from(FREE_PORTS.end() - FREE_PORTS.start()) + 1;
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..TRIES {
        let port = FREE_PORTS.start() + (entropy() % count) as u16;
        if !recent.contains(&port) && TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
            recent.push_back(port);
            if recent.len() > RECENT_MAX {
                recent.pop_front();
            }
            return Ok(port);
        }
    }
    Err(format!("no port from {} to {} is free", FREE_PORTS.start(), FREE_PORTS.end()))
}
