//! The servers of a cluster.

use alloc::string::String;
use alloc::vec::Vec;

use crate::Millis;

/// A server of a cluster, from one of its starts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Counts the starts of servers in the cluster: a server that starts again has another id.
    pub id: i32,
    /// The name that the operator gave it. Nodes that are alive have different names.
    pub name: String,
    /// Host and port at which the other nodes reach it.
    pub address: String,
    /// The version of its program.
    pub version: String,
    /// When it started, by the clock of the database.
    pub joined_at: Millis,
    /// What the node does now.
    pub state: NodeState,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It owns all shards: it decides about all jobs.
    Owner,
    /// It passes requests on, and takes over when the owner is gone.
    Standby,
    /// It has not reached the database for 3 s or more.
    Away,
    /// It has stopped, or another node has taken its place.
    Gone,
}

impl NodeState {
    /// Every state, in the order of the enum.
    pub const ALL: [Self; 4] = [Self::Owner, Self::Standby, Self::Away, Self::Gone];

    /// The word for it in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "OWNER",
            Self::Standby => "STANDBY",
            Self::Away => "AWAY",
            Self::Gone => "GONE",
        }
    }
}

/// The nodes of a cluster as one of them last read them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// Every node that is known, in the order of the starts.
    pub all: Vec<Node>,
    /// The node that owns the shards; `None` before the first owner. It may be gone.
    pub owner: Option<Node>,
    /// The number of owners so far.
    pub epoch: i64,
}
