//! The write path: writer threads take requests from a queue and commit groups of batches.

pub(in crate::embedded) mod creation_order;
pub(in crate::embedded) mod encode;
pub(in crate::embedded) mod group_commit;
pub(in crate::embedded) mod writer;
