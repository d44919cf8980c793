//! Tests over real sockets.

mod transport;
mod wire;
