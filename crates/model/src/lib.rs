//! The shared types of Longshore: ids, states, limits and records, without behaviour.
//!
//! The crate is `no_std`: no clock, random source or socket can be used here. Times and random bits are arguments.
#![no_std]

extern crate alloc;

mod attempt;
mod code;
mod console;
mod counters;
mod end;
mod ended_worker;
mod endpoint;
mod env_name;
mod env_value;
mod gpu;
mod id;
mod job;
mod json_row;
mod key;
mod lb;
pub mod limits;
mod network_volume;
mod node;
mod owner;
mod registry_auth;
mod request_no;
mod secret;
mod secret_name;
mod shared_with;
mod slug;
mod stop_reason;
mod template;
mod text_form;
mod time;
mod trace;
mod worker;

pub use attempt::{AttemptEnd, EndedAttempt};
pub use code::{CodeHash, ParseCodeError};
pub use console::{ConsoleCode, ConsoleSession};
pub use counters::Counters;
pub use end::JobEnd;
pub use ended_worker::{EndedWorker, Served};
pub use endpoint::{
    ComputeType, Durability, Endpoint, EndpointType, Objectives, PausedFrom, Provider, RetryOn, ScalerType,
    StreamShape, WebhookEvent,
};
pub use env_name::{ENV_NAME_PATTERN, is_env_name};
pub use env_value::{EnvValue, SecretReference};
pub use gpu::{Gpu, Placement, StartCause};
pub use id::{
    Attempt, EndpointId, EndpointNo, Epoch, JobId, JobKey, ParseIdError, RegistryAuthId, ShardId, TemplateId,
    VolumeId, WorkerId,
};
pub use job::{Idempotency, JobRow, JobState};
pub use json_row::JsonRowKind;
pub use key::{ApiKey, KeyScope, Permission};
pub use lb::{HttpPorts, LbSettings};
pub use network_volume::NetworkVolume;
pub use node::{Node, NodeState, Nodes};
pub use owner::{KeyId, Owner, OwnerNo, Submitter};
pub use registry_auth::RegistryAuth;
pub use request_no::{LastPosts, RequestNo};
pub use secret::Secret;
pub use secret_name::{ParseSecretNameError, SECRET_NAME_PATTERN, SecretName};
pub use shared_with::SharedWith;
pub use slug::{SLUG_CHARS_MAX, SLUG_CHARS_MIN, SLUG_PATTERN, is_reserved_slug, is_slug};
pub use stop_reason::StopReason;
pub use template::Template;
pub use time::Millis;
pub use trace::TraceContext;
pub use worker::{StartStage, WorkerCounts, WorkerPhase};
