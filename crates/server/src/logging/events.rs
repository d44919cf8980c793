//! The kinds of log lines: the name of each, by its text.
//!
//! The names are for programs that read logs. They stay when a text is improved. The manual lists them.

/// Every kind of line: its name, and its text. A text that ends with `{` is the beginning of one.
pub(super) const EVENTS: [(&str, &str); 217] = [
    ("audit.full", "audit log is full, entry lost"),
    ("audit.not_completed", "audit log write failed, entries have no status"),
    ("audit.not_written", "audit log write failed, entries lost"),
    ("audit.unreadable", "the audit log cannot be read"),
    ("bulk.created", "bulk task created"),
    ("catalog.change_failed", "catalog change failed"),
    ("catalog.change_not_stored", "catalog change not stored"),
    ("certificate.replaced", "certificate replaced"),
    ("certificate.unreadable", "certificate files unreadable, keeping the certificate"),
    ("certificate.unusable", "certificate unusable, keeping the previous one"),
    ("cgroup.cleared", "ended what was left in the cgroup of a worker"),
    ("cgroup.left_over", "the cgroup of a worker is left over"),
    ("cgroup.none", "workers have no cgroups of their own"),
    ("cgroup.not_made", "a worker runs without a cgroup of its own"),
    ("cgroup.unstarted_left_over", "the cgroup of a worker that was not started is left over"),
    ("cgroup.unused", "workers get no cgroups of their own"),
    ("cgroup.used", "each worker gets a cgroup of its own"),
    ("code.damaged", "replacing damaged deployed code"),
    ("code.fetched", "fetched deployed code from object storage"),
    ("code.kept", "code kept"),
    ("code.not_fetched", "deployed code not fetched"),
    ("code.not_listed", "deployed code in object storage not listed"),
    ("code.not_removed", "unused code not removed"),
    ("code.not_removed_from_storage", "unused code not removed from object storage"),
    ("code.not_shared", "deployed code not put into object storage"),
    ("code.not_stored", "code not stored"),
    ("code.removed", "removed unused code"),
    ("code.removed_from_storage", "removed unused code from object storage"),
    ("code.renamed", "naming deployed code by its hash"),
    ("commit.failed", "commit failed, reloading queues"),
    ("connection.cut", "connection ended early"),
    ("connection.head_late", "first request head timed out"),
    ("connection.not_accepted", "cannot accept connections"),
    ("connection.tls_failed", "TLS handshake failed"),
    ("connection.tunnel_cut", "upgraded connection ended early"),
    ("connection.unused", "connection closed before its first request"),
    ("container.disk_unlimited", "the Docker daemon does not limit disks, `containerDiskInGb` has no effect"),
    ("container.left_over", "a container is left over until the next start of the server"),
    ("container.unattended", "removing a container that no server attends to"),
    ("container.unlabelled", "a container has the label of this server and no worker in its labels"),
    ("database.connection_broke", "the connection to the database broke"),
    ("database.connection_ended", "a connection to the database ended"),
    ("database.lock_awaited", "the lock of the database cannot be taken yet"),
    ("database.lost", "stopping, because the rows of the database are no longer those of this server"),
    (
        "database.old_transaction",
        "a transaction in the database is open for more than 5 min: old rows stay, and commits become slower; end it",
    ),
    (
        "database.standby_asynchronous",
        "every standby of the database is asynchronous: a failover can lose acknowledged jobs; set synchronous_standby_names",
    ),
    ("database.used", "rows and payloads are in a PostgreSQL database"),
    ("disk.full", "disk full, refusing new jobs"),
    ("disk.full_at_start", "starting on a full disk"),
    ("disk.recovered", "disk has space again"),
    (
        "docker.host_not_used",
        "DOCKER_HOST names no unix socket and is not used, this server reaches a Docker daemon by one only",
    ),
    ("docker.silent", "the Docker daemon does not answer"),
    ("drain.began", "draining, no job is handed out"),
    ("drain.end_requested", "end of drain requested"),
    ("drain.ended", "drain ended"),
    ("drain.late", "queues not paused before they are loaded"),
    ("drain.requested", "drain requested"),
    ("endpoint.change_not_stored", "endpoint change not stored"),
    ("endpoint.changed", "endpoint changed"),
    ("endpoint.created", "endpoint created"),
    ("endpoint.delete_interrupted", "a deletion was interrupted, trying again"),
    ("endpoint.deleted", "endpoint deleted"),
    ("endpoint.deployed", "endpoint deployed"),
    (
        "endpoint.no_launcher",
        "this server has no launcher of the endpoint's provider: the endpoint starts no workers, and takes jobs",
    ),
    ("endpoint.record_not_removed", "a deleted endpoint's record remains until the next start"),
    (
        "endpoint.slug_reserved",
        "the slug is reserved for the management API by now: the endpoint keeps its job routes, give it another",
    ),
    ("endpoint.token_shown", "worker token shown"),
    ("failures.file_set_aside", "file of failures set aside"),
    ("gpu.sharing_off", "GPU sharing disabled; name the GPUs under [[gpus]]"),
    ("gpu.unreadable", "the GPUs could not be read"),
    ("history.day_not_closed", "log of the history not closed, retrying when the next day begins"),
    ("history.end_dropped", "end of history dropped, it was cut off"),
    ("history.endpoint_damaged", "history of an endpoint damaged, it is left out"),
    ("history.file_foreign", "file of the history is foreign or damaged, renamed to *.foreign"),
    ("history.file_not_renamed", "file not renamed"),
    ("history.not_copied", "history not copied to the database, retrying"),
    ("history.not_opened", "history not opened, it is not stored"),
    ("history.not_read", "history not read"),
    ("history.not_removed", "old history not removed"),
    ("history.not_written", "history not written, retrying"),
    ("history.others_not_read", "history of other servers not read"),
    ("history.shortened", "oldest minutes of the history removed, `history_bytes_max` is reached"),
    ("image.building", "building an image"),
    ("image.not_built", "image not built"),
    ("image.not_removed", "image not removed"),
    ("image.record_not_written", "the record of images was not written"),
    ("image.removed", "image removed, it was used least recently"),
    ("job.damaged", "stored job damaged"),
    ("job.follow_failed", "following a job failed"),
    ("job.s3_config_unreadable", "`s3Config` not readable, worker gets none"),
    ("job.unreadable", "stored job unreadable"),
    ("key.changed", "key changed"),
    ("key.created", "key created"),
    ("key.new_address", "key used from a new address"),
    ("key.revoked", "key revoked"),
    ("key.use_not_stored", "key use not written at shutdown"),
    ("key.use_not_written", "key use not written, retrying"),
    ("lb.not_forwarded", "request not forwarded"),
    ("metrics.failed", "metrics rendering failed"),
    ("node.declared_dead", "stopping, because this node was declared dead"),
    ("node.joined", "joined the cluster"),
    ("node.lease_awaited", "the lease of this node cannot be renewed yet"),
    ("node.leave_not_told", "the other nodes were not told that this one stops"),
    ("node.not_encrypted", "no encrypted connection to another node"),
    ("node.owner_gone", "the owner of the shards is gone, taking over"),
    ("node.owner_lost", "the owner was lost while it answered"),
    ("node.owner_unread", "the owner of the shards cannot be read yet"),
    ("node.owns", "this node owns the shards now"),
    ("node.serves", "this node decides about all jobs now"),
    ("payload.not_deleted", "payload file not deleted"),
    ("payload.not_listed", "payload files not listed"),
    ("payload.not_swept", "payload objects not swept, trying again later"),
    ("payload.objects_not_deleted", "payload objects not deleted, the sweep deletes them"),
    ("payload.orphan_not_deleted", "orphaned payload file not deleted"),
    ("payload.place_moved", "payloads moved to another place"),
    ("payload.place_silent", "the place of payloads does not answer, starting without it"),
    ("payload.place_used", "large payloads and deployed code are in object storage"),
    ("payload.swept", "payload objects listed, orphans deleted"),
    ("queue.invariant_broken", "invariant broken, reloading queue"),
    ("queue.load_failed", "a queue could not be loaded, trying again"),
    ("queue.reload_failed", "queue reload failed, retrying"),
    ("queue.reloaded", "queue reloaded"),
    ("request.answered", "answered"),
    ("request.failed", "request failed"),
    ("request.panicked", "handler panicked"),
    ("resource.changed", "resource changed"),
    ("resource.created", "resource created"),
    ("resource.deleted", "resource deleted"),
    ("row.foreign_id", "JSON row under a foreign id ignored"),
    ("row.ignored", "corrupt JSON row ignored"),
    ("scrub.damaged", "stored file is damaged; run `longshore store verify` and check the disk"),
    ("scrub.stopped", "background reading of stored files stopped"),
    ("secret.key_exposed", "secrets key file is accessible to other users; set its mode to 600"),
    ("secret.sealed", "sealing secrets under the present key"),
    (
        "secret.unencrypted",
        "secrets are stored unencrypted: set LONGSHORE_SECRETS_KEY or `secrets_key_file` (longshore secret new-key)",
    ),
    ("server.file_limit", "limit of open files not raised"),
    ("server.presence_failed", "workers will take this server for gone"),
    ("server.requests_unanswered", "requests unanswered at shutdown"),
    ("server.stop_late", "stopped before all parts ended; acknowledged jobs are stored"),
    ("server.stopping", "stopping, workers continue"),
    (
        "server.url_unlikely",
        "managed workers connect to an address that the certificate is not for: set `server_url` to https:// and a name that it is for",
    ),
    ("session.changed", "session of the console"),
    ("session.ended", "session ended"),
    ("session.use_not_written", "session use not written, retrying"),
    ("store.buffered_sync_failed", "sync of buffered commits failed, retrying; check the disk"),
    ("store.compaction_failed", "log compaction failed, retrying"),
    ("store.end_not_noted", "end of log not noted; check the disk"),
    ("store.end_unproven", "the log has records, but there is no file `{"),
    ("store.not_released", "the shards could not be released"),
    ("store.release_late", "the store did not release the shards in time"),
    ("store.seal_failed", "sealing the log failed; check the disk"),
    ("store.sync_failed", "log sync failed, starting a new segment"),
    ("supervisor.panicked", "supervisor panicked: its workers run unsupervised"),
    ("template.not_deleted", "template of a refused endpoint not deleted"),
    ("traces.refused", "the collector of traces does not accept spans"),
    ("traces.resumed", "the collector of traces accepts spans again"),
    ("usage.not_stored", "worker usage not written at shutdown, next start recounts it"),
    ("usage.not_written", "worker usage not written, retrying in 60 s"),
    ("usage.row_ignored", "invalid usage row skipped"),
    ("version.ignored", "corrupt version of an endpoint ignored"),
    ("version.restored", "version restored"),
    ("volume.missing", "the directory of a volume was missing: it is empty now"),
    ("volume.not_recovered", "volume directories not recovered"),
    ("volume.not_removed", "deleted volume's directory remains until the next start"),
    ("volume.not_restored", "volume directory not restored before the next start"),
    ("volume.stray", "a directory of no volume stays"),
    ("webhook.attempted", "webhook called"),
    ("webhook.forbidden", "webhook address forbidden"),
    ("webhook.given_up", "webhook given up"),
    ("webhook.log_line_dropped", "webhook log line dropped, disk or database too slow"),
    ("webhook.log_not_removed", "webhook log of deleted endpoint not removed"),
    ("webhook.log_not_written", "webhook log lines not written"),
    ("webhook.panicked", "webhook task panicked, its call waits for the next start"),
    ("webhook.postponed", "webhook postponed"),
    ("webhook.result_not_written", "webhook result not written, retrying"),
    ("webhook.secret_corrupt", "corrupt webhook secrets: calls are not signed"),
    ("webhook.secret_not_removed", "webhook secrets of a deleted endpoint remain"),
    ("webhook.secret_rotated", "webhook secret rotated"),
    ("webhook.secrets_removed", "webhook secrets removed"),
    ("worker.address_unknown", "address of worker unknown"),
    ("worker.adopted", "worker adopted"),
    ("worker.away", "a worker's machine does not answer"),
    ("worker.back", "a worker's machine answers again"),
    ("worker.copy_removed", "a copied folder of a worker is removed"),
    ("worker.drain_requested", "worker drain requested"),
    ("worker.end_not_noted", "the end of a worker is not noted"),
    ("worker.exit_not_noted", "end of worker not noted"),
    ("worker.exited", "worker exited"),
    ("worker.health_changed", "health of worker changed"),
    ("worker.id_invalid", "worker id invalid"),
    ("worker.leftovers_ended", "leftover processes of stopped job ended"),
    ("worker.leftovers_remain", "leftover processes may still run"),
    ("worker.limits_not_enforced", "worker limits not enforced"),
    ("worker.logs_not_removed", "worker logs of deleted endpoint not removed"),
    ("worker.no_runtime", "workers start without the worker runtime"),
    ("worker.not_adopted", "workers of an earlier server not adopted, no worker is started"),
    ("worker.not_replaced", "worker not replaced"),
    ("worker.output_lost", "output of a worker was not copied"),
    ("worker.output_not_copied", "the output of a worker is not copied"),
    ("worker.output_place_not_noted", "how far the output of a worker was copied is not noted"),
    ("worker.ping_not_applied", "ping not applied"),
    ("worker.replaced", "replacing worker"),
    ("worker.start_cancelled", "worker start cancelled"),
    ("worker.start_failed", "worker start failed"),
    ("worker.started", "worker started"),
    ("worker.stop_failed", "worker stop failed"),
    ("worker.stop_refused", "a worker could not be stopped"),
    ("worker.stop_requested", "worker stop requested"),
    ("worker.stopped", "worker stopped"),
    ("worker.throttled", "worker throttled"),
    ("worker.unfit", "a worker says that it is not fit to run"),
    ("worker.unknown_endpoint", "stopping worker of unknown endpoint"),
    ("worker.wait_ended", "wait after crashes ended"),
    ("zygote.failed", "a worker of the endpoint starts without a zygote"),
    ("zygote.none", "workers of the endpoint start without a zygote"),
    ("zygote.outdated", "packages have changed: the zygote of the endpoint is made anew"),
    ("zygote.ready", "the endpoint has a zygote"),
];

/// The name of the kind of line with this text; `None` for a line of another project's crate.
pub(super) fn name_of(text: &str) -> Option<&'static str> {
    let is_it = |kind: &str| match kind.strip_suffix('{') {
        Some(beginning) => text.starts_with(beginning),
        None => text == kind,
    };
    EVENTS.iter().find(|(_, kind)| is_it(kind)).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    /// The calls that write a line.
    const CALLS: [&str; 5] =
        ["tracing::error!(", "tracing::warn!(", "tracing::info!(", "tracing::debug!(", "tracing::trace!("];
    const MANUAL: &str = include_str!("../../../../docs/manual/logs.md");

    /// Every Rust file of the server's crates.
    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    /// The text of the call that begins here: its last string literal.
    fn text_of(call: &str) -> String {
        let (mut depth, mut chars) = (1, call.chars());
        let (mut last, mut literal): (String, Option<String>) = (String::new(), None);
        while let Some(next) = chars.next() {
            match (&mut literal, next) {
                (Some(text), '\\') => match chars.next() {
                    // A line that is continued: the indentation of the next one is no part of the text.
                    Some('\n') => chars = chars.as_str().trim_start().chars(),
                    Some(escaped) => text.push(escaped),
                    None => break,
                },
                (Some(text), '"') => (last, literal) = (std::mem::take(text), None),
                (Some(text), other) => text.push(other),
                (None, '"') => literal = Some(String::new()),
                (None, '(') => depth += 1,
                (None, ')') => depth -= 1,
                (None, _) => {}
            }
            if depth == 0 {
                break;
            }
        }
        last
    }

    /// The texts of all lines in the source, without tests. Lines of tools and of tests are none of the server's.
    fn texts() -> BTreeSet<String> {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut files = Vec::new();
        for folder in std::fs::read_dir(crates).unwrap() {
            sources(&folder.unwrap().path().join("src"), &mut files);
        }
        let mut texts = BTreeSet::new();
        for file in files
            .iter()
            .filter(|file| !file.ends_with("logging/json.rs") && !file.ends_with("logging/events.rs"))
        {
            let source = std::fs::read_to_string(file).unwrap();
            for call in CALLS {
                texts.extend(source.split(call).skip(1).map(text_of));
            }
        }
        texts
    }

    #[test]
    fn every_line_in_the_source_has_a_name_and_every_name_a_line() {
        let texts = texts();
        let unnamed: Vec<_> = texts.iter().filter(|text| name_of(text).is_none()).collect();
        assert!(unnamed.is_empty(), "name these lines in events.rs and in the manual: {unnamed:#?}");
        let used: BTreeSet<_> = texts.iter().filter_map(|text| name_of(text)).collect();
        let unused: Vec<_> = EVENTS.iter().filter(|(name, _)| !used.contains(name)).collect();
        assert!(unused.is_empty(), "no line has these names: {unused:#?}");
    }

    #[test]
    fn names_are_unique_and_in_the_manual() {
        assert!(EVENTS.is_sorted_by(|(a, _), (b, _)| a < b));
        for (name, text) in EVENTS {
            let shown = text.split('{').next().unwrap_or_default().trim_end_matches([' ', '`']);
            let row = format!("| `{name}` | {shown}");
            assert!(MANUAL.contains(&row), "the manual has no row {row}");
        }
        let rows = MANUAL.lines().filter(|line| line.starts_with("| `") && line.contains('.'));
        let listed = rows.filter(|row| row.split('`').nth(1).is_some_and(|name| name.contains('.'))).count();
        assert_eq!(listed, EVENTS.len(), "the manual lists names that no line has");
    }
}
