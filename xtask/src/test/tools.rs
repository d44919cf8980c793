//! What the tests need on the machine: installed where it is missing, on Debian, and left alone where it is
//! there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::succeed;
use crate::workspace;

/// How often a download is tried: what the network does must not decide over the tests.
const TRIES: &str = "8";
/// Where the Debian packages of PostgreSQL have its programs.
const POSTGRESQL: &str = "/usr/lib/postgresql";
/// The version of `cargo deny` that reads `deny.toml`.
const CARGO_DENY: &str = "0.20.2";

/// The browser of the tests and of the bench, and its Debian package: Chromium without what draws windows.
const BROWSER: &str = "chromium-headless-shell";

/// Paths of the installed tools that the tests need.
pub struct Tools {
    venv: PathBuf,
    cargo_deny: PathBuf,
}

impl Tools {
    /// Looks for every tool, and installs what is missing unless told not to.
    pub fn ensure(skip_install: bool) -> Result<Self, String> {
        let setup = Setup { skip_install, root: workspace::root() };
        setup.rust_component("fmt", "rustfmt")?;
        setup.rust_component("clippy", "clippy")?;
        setup.programs(&[
            ("cc", "build-essential"),
            ("curl", "curl"),
            ("python3", "python3"),
            ("node", "nodejs"),
            ("npm", "npm"),
            ("valgrind", "valgrind"),
            ("zstd", "zstd"),
            ("setpriv", "util-linux"),
            (BROWSER, BROWSER),
            ("firefox-esr", "firefox-esr"),
            ("dockerd", "docker.io"),
            ("docker", "docker.io"),
            ("docker-registry", "docker-registry"),
            ("prometheus", "prometheus"),
            ("promtool", "prometheus"),
            ("h2load", "nghttp2-client"),
            ("/usr/sbin/pgbouncer", "pgbouncer"),
        ])?;
        setup.postgresql()?;
        let venv = setup.root.join(".tools/venv");
        // It is compiled while the others are fetched.
        std::thread::scope(|scope| {
            let compiled = scope.spawn(|| setup.cargo_deny());
            setup.python_packages(&venv, &setup.root.join("e2e/requirements.txt"))?;
            setup.node_packages(&setup.root.join("e2e"))?;
            setup.node_packages(&setup.root.join("e2e/api_types"))?;
            let cargo_deny = compiled.join().map_err(|_| "the installation of cargo-deny panicked")??;
            Ok(Self { venv: venv.clone(), cargo_deny })
        })
    }

    /// The Python that has the official SDK. Installs it with its packages where it is missing.
    pub fn ensure_python() -> Result<PathBuf, String> {
        let setup = Setup { skip_install: false, root: workspace::root() };
        setup.programs(&[("python3", "python3")])?;
        let venv = setup.root.join(".tools/venv");
        setup.python_packages(&venv, &setup.root.join("e2e/requirements.txt"))?;
        Ok(venv.join("bin/python"))
    }

    /// A Python with the packages of the heavy handler of the bench. Installs them where they are missing.
    pub fn ensure_heavy_python() -> Result<PathBuf, String> {
        let setup = Setup { skip_install: false, root: workspace::root() };
        setup.programs(&[("python3", "python3")])?;
        let venv = setup.root.join(".tools/heavy");
        setup.python_packages(&venv, &setup.root.join("bench/worker/requirements.txt"))?;
        Ok(venv.join("bin/python"))
    }

    /// Installs the proxies that the bench compares load balancing with.
    pub fn ensure_proxies() -> Result<(), String> {
        let setup = Setup { skip_install: false, root: workspace::root() };
        let is_there = |program: &str| works(Command::new(format!("/usr/sbin/{program}")).arg("-v"));
        if is_there("nginx") && is_there("haproxy") {
            return Ok(());
        }
        setup.apt(&["nginx-light", "haproxy"])
    }

    /// Installs the browser in which the bench measures the console.
    pub fn ensure_browser() -> Result<(), String> {
        Setup { skip_install: false, root: workspace::root() }.programs(&[(BROWSER, BROWSER)])
    }

    /// Installs what the bench compares the server with; what comes from pip and npm goes into `folder`.
    pub fn ensure_peers(folder: &Path) -> Result<(), String> {
        let setup = Setup { skip_install: false, root: workspace::root() };
        let sources = setup.root.join("bench/peers");
        let is_there = works(Command::new("beanstalkd").arg("-v"));
        if !is_there || !works(Command::new("redis-server").arg("--version")) {
            setup.apt(&["beanstalkd", "redis-server"])?;
        }
        setup.postgresql()?;
        setup.programs(&[("python3", "python3"), ("node", "nodejs"), ("npm", "npm")])?;
        setup.python_packages(&folder.join("venv"), &sources.join("requirements.txt"))?;
        fs::copy(sources.join("package.json"), folder.join("package.json"))
            .map_err(|error| format!("cannot write to {}: {error}", folder.display()))?;
        setup.node_packages(folder)
    }

    /// `cargo deny`, in the version that the tests install.
    pub fn cargo_deny(&self) -> Command {
        Command::new(&self.cargo_deny)
    }

    /// The Python that has the official SDK, first in its own PATH: handlers are started as `python3`.
    pub fn python(&self) -> Command {
        let bin = self.venv.join("bin");
        let mut python = Command::new(bin.join("python"));
        let path = std::env::var("PATH").unwrap_or_default();
        python.env("PATH", format!("{}:{path}", bin.display())).env("VIRTUAL_ENV", &self.venv);
        python
    }
}

struct Setup {
    skip_install: bool,
    root: PathBuf,
}

impl Setup {
    fn rust_component(&self, command: &str, component: &str) -> Result<(), String> {
        if works(workspace::cargo().args([command, "--version"])) {
            return Ok(());
        }
        self.announce(component)?;
        succeed(Command::new("rustup").args(["component", "add", component]))
    }

    /// Installs the Debian packages of those programs that are not in the PATH.
    fn programs(&self, programs: &[(&str, &str)]) -> Result<(), String> {
        let is_missing = |program: &str| !works(Command::new(program).arg("--version"));
        let missing: Vec<&str> =
            programs.iter().filter(|(program, _)| is_missing(program)).map(|(_, package)| *package).collect();
        if missing.is_empty() { Ok(()) } else { self.apt(&missing) }
    }

    /// Installs PostgreSQL, whose programs are not in the PATH.
    fn postgresql(&self) -> Result<(), String> {
        if Path::new(POSTGRESQL).exists() { Ok(()) } else { self.apt(&["postgresql"]) }
    }

    fn apt(&self, packages: &[&str]) -> Result<(), String> {
        self.announce(&packages.join(", "))?;
        let retries = format!("Acquire::Retries={TRIES}");
        succeed(as_root("apt-get")?.args(["update", "-qq", "-o", &retries]))?;
        let mut install = as_root("apt-get")?;
        install.args(["install", "-y", "-qq", "--no-install-recommends", "-o", &retries]).args(packages);
        succeed(install.env("DEBIAN_FRONTEND", "noninteractive"))
    }

    /// Builds `cargo deny` where it is missing: unoptimized, which takes a minute of two cores and checks in seconds.
    fn cargo_deny(&self) -> Result<PathBuf, String> {
        let folder = self.root.join(".tools/cargo-deny");
        let program = folder.join("bin/cargo-deny");
        let version = workspace::output(Command::new(&program).arg("--version")).unwrap_or_default();
        if version.trim() == format!("cargo-deny {CARGO_DENY}") {
            return Ok(program);
        }
        self.announce("cargo-deny")?;
        let mut install = workspace::cargo();
        install.args(["install", "cargo-deny", "--version", CARGO_DENY, "--locked", "--force", "--quiet"]);
        install.args(["--debug", "--no-default-features", "--root"]).arg(folder);
        succeed(install.env("CARGO_PROFILE_DEV_DEBUG", "0"))?;
        Ok(program)
    }

    /// Makes `venv` a virtual environment with everything that is `wanted`.
    fn python_packages(&self, venv: &Path, wanted: &Path) -> Result<(), String> {
        let stamp = Stamp::new(venv.join("installed.txt"), &[wanted])?;
        let python = venv.join("bin/python");
        if stamp.is_current() && works(Command::new(&python).arg("--version")) {
            return Ok(());
        }
        self.announce(&format!("the Python packages of {}", wanted.display()))?;
        self.make_venv(venv)?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "on"]);
        install.args(["--retries", TRIES, "--timeout", "60", "-r"]);
        succeed(install.arg(wanted))?;
        stamp.write()
    }

    fn make_venv(&self, venv: &Path) -> Result<(), String> {
        // `--clear`: a half-made one of an earlier, interrupted run must not stay.
        let make = |python: &str| succeed(Command::new(python).args(["-m", "venv", "--clear"]).arg(venv));
        if make("python3").is_ok() {
            return Ok(());
        }
        // Debian keeps what it takes in a package of its own, for its own Python.
        self.apt(&["python3", "python3-venv"])?;
        make("/usr/bin/python3")
    }

    /// The packages of a folder's `package.json`, in its `node_modules`.
    fn node_packages(&self, folder: &Path) -> Result<(), String> {
        let (wanted, lock) = (folder.join("package.json"), folder.join("package-lock.json"));
        let locked = lock.exists();
        let inputs: &[&Path] = if locked { &[&wanted, &lock] } else { &[&wanted] };
        let stamp = Stamp::new(folder.join("node_modules/installed.txt"), inputs)?;
        if stamp.is_current() {
            return Ok(());
        }
        self.announce(&format!("the npm packages of {}", wanted.display()))?;
        let mut install = Command::new("npm");
        install.arg(if locked { "ci" } else { "install" }).args(["--no-audit", "--no-fund"]);
        install.args(["--fetch-retries", TRIES]);
        if !locked {
            install.arg("--no-package-lock");
        }
        succeed(install.arg("--prefix").arg(folder))?;
        stamp.write()
    }

    fn announce(&self, what: &str) -> Result<(), String> {
        if self.skip_install {
            return Err(format!("missing: {what}; run without --skip-install to install it"));
        }
        println!("    installing {what}");
        Ok(())
    }
}

/// Remembers what was installed from which files, so that nothing is asked of the network when nothing changed.
struct Stamp {
    path: PathBuf,
    text: String,
}

impl Stamp {
    fn new(path: PathBuf, inputs: &[&Path]) -> Result<Self, String> {
        let read = |input: &&Path| {
            fs::read_to_string(input).map_err(|error| format!("cannot read {}: {error}", input.display()))
        };
        let text = inputs.iter().map(read).collect::<Result<String, _>>()?;
        Ok(Self { path, text })
    }

    fn is_current(&self) -> bool {
        fs::read_to_string(&self.path).is_ok_and(|found| found == self.text)
    }

    fn write(&self) -> Result<(), String> {
        fs::write(&self.path, &self.text)
            .map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}

fn works(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// A command with the rights of root: as it is for root, through sudo for others.
fn as_root(program: &str) -> Result<Command, String> {
    let user = workspace::output(Command::new("id").arg("-u"))?;
    if user.trim() == "0" {
        return Ok(Command::new(program));
    }
    if !works(Command::new("sudo").arg("--version")) {
        return Err(format!("`{program}` needs root: install sudo, or run this as root once"));
    }
    let mut sudo = Command::new("sudo");
    // sudo does not pass the environment on; apt must not stop to ask.
    sudo.args(["env", "DEBIAN_FRONTEND=noninteractive", program]);
    Ok(sudo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_current_until_an_input_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let input = folder.path().join("requirements.txt");
        let stamp = || Stamp::new(folder.path().join("stamp"), &[&input]).expect("a stamp");
        fs::write(&input, "a==1\n").expect("a file");
        assert!(!stamp().is_current());
        stamp().write().expect("written");
        assert!(stamp().is_current());
        fs::write(&input, "a==2\n").expect("a file");
        assert!(!stamp().is_current());
        fs::remove_file(&input).expect("removed");
        assert!(Stamp::new(folder.path().join("stamp"), &[&input]).is_err());
    }

    #[test]
    fn nothing_is_installed_when_told_so() {
        let setup = Setup { skip_install: true, root: PathBuf::new() };
        let error = setup.apt(&["no-such-package"]).expect_err("refused");
        assert_eq!(error, "missing: no-such-package; run without --skip-install to install it");
    }
}
