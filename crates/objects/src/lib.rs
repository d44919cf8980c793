//! Large payloads and deployed code in object storage, so that every computer of an installation finds them.
//!
//! ```text
//! <prefix>/longshore.json            the installation that the objects belong to
//! <prefix>/payloads/<no>/<name>      a large payload of endpoint number <no>; names as in the folder of payloads
//! <prefix>/code/<hash>.tgz           the archive of deployed code
//! <prefix>/code/<hash>.json          what is known of it; written last
//! <prefix>/probe/<name>              written, read and deleted when a server starts
//! ```
//!
//! The names are those of [ADR 0027](../../../docs/adr/0027-payloads-in-object-storage.md). [`Place`] is where the objects
//! are, as an operator writes it. [`ObjectBlobs`] are the payloads, [`CodeObjects`] the code.

mod blobs;
mod code;
mod credentials;
mod failure;
mod health;
mod marker;
mod open;
mod place;
mod probe;
mod storage;
mod transport;
mod upload;

pub use blobs::ObjectBlobs;
pub use code::CodeObjects;
pub use credentials::Credentials;
pub use failure::ObjectError;
pub use place::Place;
pub use storage::Storage;
