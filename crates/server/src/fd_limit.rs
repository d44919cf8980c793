//! The limit of open files of this process, which bounds its connections.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors reserved for everything except client connections: the store, payloads, workers' logs and webhook
/// calls. Without the reserve, many connections could keep acknowledged jobs from being written.
const RESERVED: usize = 256;

/// Raises the limit to its maximum and returns how many connections it allows. Shells and service managers set a
/// low limit for old programs.
pub(crate) fn connections_max() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, "limit of open files not raised");
        }
    }
    room_for_connections(getrlimit(Resource::Nofile).current)
}

fn room_for_connections(descriptors: Option<u64>) -> usize {
    let descriptors = descriptors.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    descriptors - RESERVED.min(descriptors / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_kept_for_the_servers_own_work() {
        assert_eq!(room_for_connections(Some(20_000)), 20_000 - RESERVED);
        assert_eq!(room_for_connections(Some(100)), 50);
        assert_eq!(room_for_connections(None), usize::MAX - RESERVED);
    }

    #[test]
    fn the_limit_is_raised_as_far_as_it_goes() {
        let room = connections_max();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
        assert_eq!(room, room_for_connections(limit.current));
    }
}
