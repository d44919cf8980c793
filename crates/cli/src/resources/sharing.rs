//! The options that share a resource with the keys of endpoints.

use clap::Args;

use crate::exit::CommandResult;
use crate::jobs::endpoint_name;
use crate::members::Members;

/// The endpoints whose keys may name a resource.
#[derive(Debug, Args)]
pub(super) struct SharingArgs {
    /// Share it with only keys of this endpoint, or `*`
    #[arg(long, value_name = "ENDPOINT", value_parser = endpoint_or_all)]
    endpoint: Vec<String>,
    /// Share it with no endpoint's keys
    #[arg(long, conflicts_with = "endpoint")]
    no_endpoints: bool,
}

impl SharingArgs {
    pub(super) fn set(&self, members: &mut Members) -> CommandResult<()> {
        let is_set = self.no_endpoints || !self.endpoint.is_empty();
        members.set("endpoints", is_set.then_some(&self.endpoint))
    }
}

/// Parses the id or slug of an endpoint, or `*` for all endpoints.
fn endpoint_or_all(text: &str) -> Result<String, String> {
    if text == "*" { Ok(text.to_owned()) } else { endpoint_name(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_endpoints_are_a_star() {
        assert_eq!(endpoint_or_all("*"), Ok("*".to_owned()));
        assert_eq!(endpoint_or_all("team/hello"), Ok("team/hello".to_owned()));
        endpoint_or_all("a*").unwrap_err();
    }
}
