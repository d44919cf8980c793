//! The generator's HTTP/1.1: prepared requests and a parser of responses. Minimal, because the generator's own time
//! counts in the measurements.

mod answer;
mod request;

pub use answer::{Answer, Parsed, parse};
pub use request::Request;
