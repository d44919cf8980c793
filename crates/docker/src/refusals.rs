//! What the daemon refused, in words that say what to do.

use longshore_model::{CodeHash, StartStage};

/// Why an image could not be pulled. `reason`: the words of the daemon.
pub(crate) fn of_pull(image: &str, status: Option<u16>, has_login: bool, reason: &str) -> String {
    let text = reason.to_lowercase();
    let has = |part: &str| text.contains(part);
    let advice = if has("no space left") {
        "the disk of the daemon is full; remove images, for example with `docker image prune`"
    } else if has("no matching manifest") {
        "it has no variant for the processors of this computer"
    } else if has("no basic auth") || has("unauthorized") || has("authentication required") || has("denied") {
        if has_login {
            "the registry refuses the credentials that `containerRegistryAuthId` of the template names; store others with \
             `longshore registry create`, and name those"
        } else {
            "the registry asks for credentials, or has no such image; store credentials with `longshore registry create`, and \
             set `containerRegistryAuthId` of the template"
        }
    } else if status == Some(404) || has("manifest unknown") || has("not found") {
        "image not found; check its name and tag"
    } else {
        "the daemon could not fetch it"
    };
    format!("cannot pull the image {image}: {advice} ({})", reason.trim())
}

/// Why a container could not be created or started. `reason`: the words of the daemon.
pub(crate) fn of_start(image: &str, stage: StartStage, reason: &str) -> String {
    let text = reason.to_lowercase();
    let has = |part: &str| text.contains(part);
    let advice = if has("executable file not found") || has("no such file or directory") && has("exec") {
        "command not found in the image; check `dockerEntrypoint` and `dockerStartCmd` of the template"
    } else if has("no command specified") {
        "the image has no command of its own; set `dockerStartCmd` of the template"
    } else if has("exec format error") {
        "the image is for other processors than those of this computer"
    } else if has("could not select device driver") || has("nvidia-container") {
        "the daemon cannot give containers a GPU; install the NVIDIA Container Toolkit"
    } else if has("no space left") {
        "the disk of the daemon is full"
    } else if stage == StartStage::Creating {
        "the daemon refuses the container"
    } else {
        "the daemon could not start the container"
    };
    format!("cannot start a container of {image}: {advice} ({})", reason.trim())
}

/// Why deployed code does not run here.
pub(crate) fn of_code(code: &CodeHash) -> String {
    format!(
        "the template runs deployed code ({code}), and the server has no image for it; set `base_image` in [docker] to an \
         image with Python and the packages, or use the provider `process`"
    )
}

/// A further cause of an exit; `None` if there is none.
pub(crate) fn of_exit(
    signal: Option<i32>,
    out_of_memory: bool,
    limit: Option<u64>,
    was_stopped: bool,
) -> Option<String> {
    if out_of_memory {
        let limit = limit.map_or_else(String::new, |bytes| {
            format!(", the limit is {} MiB (memoryBytes)", bytes.div_ceil(1 << 20))
        });
        return Some(format!("killed: out of memory{limit}"));
    }
    (signal == Some(9) && !was_stopped)
        .then(|| "killed by another program, for example with `docker kill`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_registries_are_told_apart() {
        let cases = [
            (
                500,
                false,
                "Get \"https://r/v2/x\": no basic auth credentials",
                "store credentials with `longshore registry create`, and set `containerRegistryAuthId`",
            ),
            (
                500,
                true,
                "unauthorized: authentication required",
                "store others with `longshore registry create`",
            ),
            (404, true, "manifest for r/x:1 not found: manifest unknown", "image not found"),
            (500, false, "no matching manifest for linux/amd64 in the manifest list entries", "no variant"),
            (500, false, "write /var/lib/docker/x: no space left on device", "disk of the daemon is full"),
            (500, false, "dial tcp: lookup r: no such host", "could not fetch"),
        ];
        for (status, has_login, reason, expected) in cases {
            let text = of_pull("r/x:1", Some(status), has_login, reason);
            assert!(text.contains(expected) && text.contains(reason) && text.contains("r/x:1"), "{text}");
        }
    }

    #[test]
    fn refusals_of_containers_are_told_apart() {
        let cases = [
            ("exec: \"nope\": executable file not found in $PATH: unknown", "command not found"),
            ("No command specified", "no command of its own"),
            ("could not select device driver \"nvidia\" with capabilities: [[gpu]]", "Container Toolkit"),
            ("exec /x: exec format error", "other processors"),
        ];
        for (reason, expected) in cases {
            let text = of_start("x", StartStage::Starting, reason);
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn an_exit_names_the_memory_limit() {
        let told = of_exit(Some(9), true, Some(64 << 20), false);
        assert_eq!(told.as_deref(), Some("killed: out of memory, the limit is 64 MiB (memoryBytes)"));
        assert_eq!(of_exit(Some(9), false, None, true), None, "the launcher did it");
        assert_eq!(of_exit(None, false, None, false), None);
    }
}
