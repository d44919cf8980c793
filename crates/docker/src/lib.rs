//! Runs workers as containers of a Docker daemon: the [`DockerLauncher`].
//!
//! The daemon is reached by its unix socket. Each container carries labels with the worker, the endpoint and the
//! installation, by which a later server finds it again. What a container prints is copied into the same rotated files that
//! other launchers write, so the container is removed as soon as it has exited.

mod adopt;
mod attend;
mod build;
mod code;
mod container;
mod daemon;
mod image;
mod image_record;
mod labels;
mod launcher;
mod orphans;
mod output;
mod progress;
mod pulls;
mod refusals;
mod settings;

pub use code::CodeCommand;
pub use launcher::DockerLauncher;
pub use settings::{DockerSettings, PullPolicy};
