//! `longshore tls`: certificates for a private network.

mod files;
mod names;
mod pair;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use longshore_client::Roots;

use self::files::PairFiles;
use self::pair::Pair;
use crate::exit::{CommandError, CommandExit, CommandResult, cannot};

pub(crate) const TLS_EXAMPLES: &str = "\
Examples:
  longshore tls self-signed --name gpu.lan --name 192.168.1.20";

const SELF_SIGNED_EXAMPLES: &str = "\
Examples:
  longshore tls self-signed
  longshore tls self-signed --name gpu.lan --name 10.0.0.7 --out /etc/longshore

The default names: this computer's host name, localhost, 127.0.0.1 and ::1.
Creates ca.pem, server.pem and server.key, valid for 10 years, and prints how to
use them. Clients that trust ca.pem accept the server's certificate. Python
reads one file only: authorities.pem has ca.pem and the authorities of this
computer. The key of ca.pem is not stored: for other names, create a new pair in
another directory.";

/// Subcommands of `longshore tls`.
#[derive(Debug, Subcommand)]
pub enum TlsCommand {
    /// Create an authority and a server certificate that it signed
    #[command(after_help = SELF_SIGNED_EXAMPLES)]
    SelfSigned(SelfSignedArgs),
}

/// Arguments of `longshore tls self-signed`.
#[derive(Debug, Args)]
pub struct SelfSignedArgs {
    /// Host name or IP address; repeatable [default: those below]
    #[arg(long = "name", value_name = "HOST")]
    names: Vec<String>,
    /// Directory for the files [default: longshore-tls]
    #[arg(long, value_name = "DIR", default_value = "longshore-tls", hide_default_value = true)]
    out: PathBuf,
}

/// Runs a subcommand. Works on files only.
pub(crate) fn run(command: &TlsCommand) -> CommandResult {
    let TlsCommand::SelfSigned(args) = command;
    let names = if args.names.is_empty() { names::of_this_computer() } else { names::checked(&args.names)? };
    let pair = Pair::create(&names).map_err(|error| cannot("create the certificates", error))?;
    let out = std::path::absolute(&args.out).map_err(|error| cannot("find the directory", error))?;
    let files = PairFiles::create(&out, &pair, &Roots::system_pem().unwrap_or_default())?;
    let text = explanation(&files, &names, &pair.not_after);
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(|error| cannot("write to standard output", error))?;
    Ok(CommandExit::Success)
}

/// Returns what was created, and the commands that use it.
fn explanation(files: &PairFiles, names: &[String], not_after: &str) -> String {
    let [authority, authorities, certificate, key] =
        [&files.authority, &files.authorities, &files.certificate, &files.key].map(|path| quoted(path));
    let host = names.first().map_or("localhost", String::as_str);
    let host = if host.contains(':') { format!("[{host}]") } else { host.replacen("*.", "gpu.", 1) };
    let url = format!("https://{host}:8080");
    format!(
        "certificate for {}, valid until {not_after}\n  \
         {authority}  the authority, for clients\n  \
         {authorities}  the authority and those of this computer, for Python\n  \
         {certificate}  the server's certificate\n  \
         {key}  its key, which only you can read\n\
         \n\
         start the server; its managed workers get the two variables for Python, too:\n  \
         export SSL_CERT_FILE={authorities}\n  \
         export REQUESTS_CA_BUNDLE={authorities}\n  \
         LONGSHORE_SERVER_URL={url} longshore serve --listen 0.0.0.0:8080 \\\n    \
         --tls-cert {certificate} \\\n    \
         --tls-key {key}\n\
         use it, on each computer with a copy of ca.pem and authorities.pem:\n  \
         longshore login --url {url} --ca-file {authority}\n  \
         curl --cacert {authority} {url}/healthz\n  \
         SSL_CERT_FILE={authorities} REQUESTS_CA_BUNDLE={authorities} python3 client.py\n",
        names.join(", "),
    )
}

/// Returns a path as a word for a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@:".contains(letter);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// An error in a `--name`.
fn unusable_name(name: &str) -> CommandError {
    CommandError::usage(format!("`{name}` is not a host name or an IP address"))
        .next("give the host alone, without scheme and port: --name gpu.lan --name 192.168.1.20")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_words_of_a_shell() {
        assert_eq!(quoted(Path::new("/etc/longshore/ca.pem")), "/etc/longshore/ca.pem");
        assert_eq!(quoted(Path::new("/my dir/it's")), r"'/my dir/it'\''s'");
    }

    #[test]
    fn the_commands_name_the_first_host() {
        let dir = Path::new("/tls");
        let files = PairFiles::in_dir(dir);
        let text = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            explanation(&files, &names, "2036-01-31")
        };
        assert!(text(&["gpu.lan", "10.0.0.1"]).contains("--url https://gpu.lan:8080 --ca-file /tls/ca.pem"));
        assert!(text(&["::1"]).contains("LONGSHORE_SERVER_URL=https://[::1]:8080 "));
    }
}
