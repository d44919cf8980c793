//! One client connection: accepting it, serving its requests, and its timeouts.

pub(crate) mod accept;
pub(crate) mod answers;
pub(crate) mod half_close;
mod head_timer;
pub(crate) mod lingering_body;
pub(crate) mod parser_errors;
pub(crate) mod serve;
pub(crate) mod tls;
pub(crate) mod write_timeout;
