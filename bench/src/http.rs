//! The generator's HTTP/1.1: prepared requests out, answers in. No more of it than the measured servers speak, for
//! what the generator spends it may not measure.

mod answer;
mod request;

pub use answer::{Answer, Parsed, parse};
pub use request::Request;
