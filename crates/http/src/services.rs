//! Services that the routes use and the server provides: files, prices, the report of the scrub, and facts about the
//! server and its process.

pub(crate) mod burns;
pub(crate) mod certificate_end;
pub(crate) mod files;
pub(crate) mod node_status;
pub(crate) mod open_connections;
pub(crate) mod prices;
pub(crate) mod process;
pub(crate) mod scrub;
pub(crate) mod server_facts;
