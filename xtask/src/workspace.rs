//! The workspace as cargo and git see it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// The folder of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The files of the project, relative to its folder: those that git tracks or would track.
pub fn files() -> Result<Vec<PathBuf>, String> {
    let mut git = Command::new("git");
    git.current_dir(root()).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listing = output(&mut git)?;
    let mut files: Vec<PathBuf> =
        listing.split('\0').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    files.retain(|path| root().join(path).is_file());
    files.sort();
    Ok(files)
}

/// What `cargo metadata` says.
#[derive(Deserialize)]
pub struct Metadata {
    /// Every package of the tree.
    pub packages: Vec<Package>,
    /// The ids of those that belong to the workspace.
    pub workspace_members: Vec<String>,
    /// The folder that cargo builds into.
    pub target_directory: PathBuf,
}

/// A package of the workspace or a dependency, as `cargo metadata` prints it.
#[derive(Deserialize)]
pub struct Package {
    /// Unique in the tree.
    pub id: String,
    /// The name in `Cargo.toml`.
    pub name: String,
    /// Absolute path of its `Cargo.toml`.
    pub manifest_path: PathBuf,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
}

/// A dependency of a package.
#[derive(Deserialize)]
pub struct Dependency {
    /// The name of the package depended on.
    pub name: String,
    /// `dev`, `build`, or none for a normal one.
    pub kind: Option<String>,
}

impl Metadata {
    /// Runs `cargo metadata` in the workspace.
    ///
    /// # Errors
    ///
    /// Cargo fails, or prints JSON of another shape.
    pub fn read() -> Result<Self, String> {
        let mut cargo = cargo();
        cargo.current_dir(root()).args(["metadata", "--format-version", "1"]);
        let json = output(&mut cargo)?;
        serde_json::from_str(&json).map_err(|error| format!("`cargo metadata` is not readable: {error}"))
    }

    /// The packages of the workspace.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }
}

/// The cargo that runs us. What it has set for this program is removed: a build script that watches such a variable would run
/// again, and with it most of the build, each time one changes between `cargo` and `cargo xtask`.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    if std::env::var_os("CARGO_INCREMENTAL").is_none() && !is_continued() {
        cargo.env("CARGO_INCREMENTAL", "0");
    }
    cargo
}

/// Whether an incremental build of the workspace is there. The first build of a clone has nothing to continue, and takes less
/// time when it notes nothing for the next one.
fn is_continued() -> bool {
    let program = std::env::current_exe().unwrap_or_default();
    let entries = program.parent().map(|folder| fs::read_dir(folder.join("incremental")));
    let mut entries = entries.into_iter().flatten().flatten().flatten();
    entries.any(|entry| entry.file_name().to_string_lossy().starts_with("longshore"))
}

/// Runs a program and answers what it prints.
pub fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot run `{program}`: {error}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{program}` failed ({}): {}", output.status, complaint.trim()));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("`{program}` printed something that is not text"))
}
