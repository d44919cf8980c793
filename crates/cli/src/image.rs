//! The options that run a container image in place of a folder's handler.

use clap::Args;
use longshore_client::{Client, Collection};
use serde::Deserialize;

use crate::exit::{CommandError, CommandExit, CommandResult};

/// An image, and what its workers get.
#[derive(Clone, Debug, Default, Args)]
pub struct ImageArgs {
    /// Run this image in place of a handler
    #[arg(long, value_name = "IMAGE", group = "what")]
    pub(crate) image: Option<String>,
    /// The endpoint's name [default: the image's]
    #[arg(long, value_name = "NAME", requires = "what")]
    pub(crate) name: Option<String>,
    /// Credentials for the registry, by name or id
    #[arg(long, value_name = "NAME", requires = "image")]
    pub(crate) registry_auth: Option<String>,
    /// A type of GPU that workers may use; repeatable
    #[arg(long, value_name = "TYPE", requires = "image")]
    pub(crate) gpu: Vec<String>,
    /// A network volume of the workers; repeatable
    #[arg(long, value_name = "ID", requires = "image")]
    pub(crate) volume: Vec<String>,
}

/// Registry credentials, as far as they are needed to find them.
#[derive(Deserialize)]
struct RegistryAuth {
    id: String,
    name: String,
}

/// Returns the id of registry credentials with this id or name.
///
/// # Errors
///
/// [`CommandExit::NotFound`] if there are none, a usage error if the name is not unique, and the error of the request.
pub(crate) async fn registry_auth_id(client: &Client, wanted: &str) -> CommandResult<String> {
    let rows = client.list(Collection::RegistryAuths).await?;
    // A row of another shape is none that a person could name.
    let all: Vec<RegistryAuth> = rows.iter().filter_map(|row| serde_json::from_str(row.get()).ok()).collect();
    let named: Vec<&RegistryAuth> =
        all.iter().filter(|auth| auth.id == wanted || auth.name == wanted).collect();
    match named[..] {
        [one] => Ok(one.id.clone()),
        [] => Err(CommandError::new(
            CommandExit::NotFound,
            format!("there are no registry credentials `{wanted}`"),
        )
        .next("`longshore registry create` stores them, `longshore registry list` lists the stored ones")),
        _ => Err(CommandError::usage(format!("several registry credentials have the name `{wanted}`"))
            .next("give the id of one; `longshore registry list` lists them")),
    }
}

/// The part of an image's name that says what it is: `registry:5000/team/chat:1` → `chat`.
pub(crate) fn short_name(image: &str) -> &str {
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split([':', '@']).next().unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_name_has_neither_registry_nor_tag() {
        for (image, name) in [
            ("python", "python"),
            ("runpod/worker-v1-vllm:v2.7.0", "worker-v1-vllm"),
            ("127.0.0.1:5000/team/chat@sha256:00", "chat"),
        ] {
            assert_eq!(short_name(image), name);
        }
    }
}
