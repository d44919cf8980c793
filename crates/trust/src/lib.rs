//! The certificate authorities that Longshore's TLS clients trust: the command line's and the caller of webhooks.
//!
//! Trusted are the authorities of the system, those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name, and those in a file
//! of Longshore's own settings. On a system without authorities, such as a bare container, the ones that Mozilla trusts
//! take the place of the system's; they are part of the program.

mod files;
mod problem;
mod roots;

pub use files::TrustError;
pub use problem::TlsProblem;
pub use roots::Roots;
