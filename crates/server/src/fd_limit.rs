//! How many files, and with them connections, this process may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Kept for everything that is no connection of a client: the database, payloads, workers and their logs, calls to
/// webhooks. Without it a flood of clients would keep acknowledged jobs from being written.
const RESERVED: usize = 256;

/// Raises the process's limit as far as it may go, and answers how many connections that leaves room for. Shells and
/// service managers set a low one for the sake of old programs.
pub(crate) fn connections_max() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, "the limit of open files stays as it is");
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
