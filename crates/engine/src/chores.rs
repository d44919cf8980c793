//! Work beside the main path: each chore is one component with one contract.

pub(crate) mod metering;
pub(crate) mod webhooks;
