//! Services that the routes use and the server provides: files, prices and the report of the scrub.

pub(crate) mod files;
pub(crate) mod prices;
pub(crate) mod scrub;
