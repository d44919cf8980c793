//! Tests over real sockets, with a real engine where the job interface is concerned.

mod api_keys;
mod authorization;
mod changing;
mod direct;
mod edges;
mod events;
mod express;
mod fake_files;
mod fixture;
mod following;
mod guarding;
mod hostile;
mod limiting;
mod listing;
mod logging;
mod management;
mod parking;
mod premises;
mod rows;
mod server;
mod streaming;
mod submitting;
mod transport;
mod wire;
mod words;
mod workers;
