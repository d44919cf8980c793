//! Tests of whole supervisors, with a queue and a launcher in memory and under a paused clock.

mod adoption;
mod crashes;
mod ending;
mod fixture;
mod lease;
mod placing;
mod replacement;
mod scaling;

pub(crate) use fixture::{a_template, an_endpoint};
