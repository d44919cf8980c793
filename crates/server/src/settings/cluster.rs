//! The settings of servers that share a database.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use rustix::system::uname;

use super::{Settings, SettingsError};

/// The largest number of characters of a node's name.
const NAME_CHARS_MAX: usize = 63;

/// The files of the encrypted connections between nodes.
pub(crate) struct ClusterTls<'a> {
    pub(crate) certificate: &'a Path,
    pub(crate) key: &'a Path,
    /// The authorities of the other nodes' certificates.
    pub(crate) authorities: &'a Path,
}

impl Settings {
    /// Whether this server shares its database with others.
    pub(crate) fn is_node(&self) -> bool {
        !self.cluster_listen.is_empty()
    }

    /// Host and port at which the other nodes reach this one, which listens on `bound`.
    pub(crate) fn cluster_address(&self, bound: SocketAddr) -> String {
        if self.cluster_address.is_empty() { bound.to_string() } else { self.cluster_address.clone() }
    }

    /// The files of the encrypted connections between nodes; `None` if they are not encrypted.
    pub(crate) fn cluster_tls(&self) -> Option<ClusterTls<'_>> {
        let is_set = !self.cluster_tls_cert.as_os_str().is_empty();
        is_set.then_some(ClusterTls {
            certificate: &self.cluster_tls_cert,
            key: &self.cluster_tls_key,
            authorities: &self.cluster_ca_file,
        })
    }

    /// The name of this node: the setting, or the name of the computer.
    pub(crate) fn node_name(&self) -> String {
        if self.node_name.is_empty() {
            return uname().nodename().to_string_lossy().chars().take(NAME_CHARS_MAX).collect();
        }
        self.node_name.clone()
    }

    pub(super) fn check_cluster(&self) -> Result<(), SettingsError> {
        let refuse = |text: String| Err(SettingsError::Value(text));
        let is_name = |name: &str| {
            name.len() <= NAME_CHARS_MAX
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        if !is_name(&self.node_name) {
            return refuse(format!(
                "`node_name` is {:?}; use at most {NAME_CHARS_MAX} letters, digits, `-`, `_` and `.`",
                self.node_name
            ));
        }
        if !self.is_node() {
            return Ok(());
        }
        let files = [&self.cluster_tls_cert, &self.cluster_tls_key, &self.cluster_ca_file];
        let set = files.iter().filter(|file| !file.as_os_str().is_empty()).count();
        if set != 0 && set != files.len() {
            return refuse(
                "`cluster_tls_cert`, `cluster_tls_key` and `cluster_ca_file` go together: set all, or none"
                    .to_owned(),
            );
        }
        if !self.has_database() {
            return refuse(
                "`cluster_listen` needs a database that the servers share; set `store` to its address"
                    .to_owned(),
            );
        }
        let is_everywhere = self.cluster_listen.parse().is_ok_and(|it: SocketAddr| it.ip().is_unspecified())
            || self.cluster_listen.starts_with(&format!("{}:", Ipv4Addr::UNSPECIFIED));
        if is_everywhere && self.cluster_address.is_empty() {
            return refuse(format!(
                "`cluster_listen` is {:?}, which is every address of this computer; set `cluster_address` to the host and \
                 port at which the other servers reach it",
                self.cluster_listen
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::tests::load;

    #[test]
    fn a_node_needs_a_database_and_an_address_that_others_reach() {
        let database = ("STORE", "postgres://u@localhost/d");
        assert!(!load(&[]).unwrap().is_node());
        let node = load(&[database, ("CLUSTER_LISTEN", "10.0.0.7:8081"), ("NODE_NAME", "a-1")]).unwrap();
        assert!(node.is_node());
        assert_eq!(node.node_name(), "a-1");
        assert_eq!(node.cluster_address("10.0.0.7:8081".parse().unwrap()), "10.0.0.7:8081");
        for (pairs, expected) in [
            (&[("CLUSTER_LISTEN", "10.0.0.7:8081")][..], "set `store` to its address"),
            (&[database, ("CLUSTER_LISTEN", "0.0.0.0:8081")], "set `cluster_address`"),
            (&[database, ("CLUSTER_LISTEN", "[::]:8081")], "set `cluster_address`"),
            (&[("NODE_NAME", "a b")], "`node_name` is"),
            (&[database, ("CLUSTER_LISTEN", "10.0.0.7:1"), ("CLUSTER_CA_FILE", "ca")], "set all, or none"),
        ] {
            let refusal = load(pairs).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{refusal}");
        }
    }
}
