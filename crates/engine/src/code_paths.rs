//! Converts templates of older versions: these name deployed code by the path of its directory, newer ones by its hash.

use std::path::{Component, Path};

use longshore_model::{CodeHash, Template};
use longshore_store::{StoreError, Write};
use longshore_vault::Keyring;

use crate::secrets::sealed_template;

/// The directory of deployed code in every data directory.
const CODE_DIR: &str = "code";
/// The subcommand by which older versions ran the code in a directory.
const CODE_SUBCOMMAND: &str = "code-worker";

/// Converts the templates in place and returns the writes of the converted ones. `is_here` returns whether this server
/// has the code.
///
/// # Errors
///
/// [`StoreError::Io`] if the operating system gives no random bytes to seal a template.
pub(crate) fn name_by_hash(
    keyring: &Keyring,
    templates: &mut [Template],
    is_here: impl Fn(&CodeHash) -> bool,
) -> Result<Vec<Write>, StoreError> {
    let mut writes = Vec::new();
    for template in templates {
        if convert(template, &is_here) {
            writes.push(Write::PutTemplate(Box::new(sealed_template(keyring, template)?)));
        }
    }
    Ok(writes)
}

/// Converts one template if its workdir is a directory of code. Returns whether the template changed.
///
/// The path may be of another computer or of a data directory that was moved. Its name and hash identify the code: the
/// template is converted if an older version made it, or if this server has the code.
fn convert(template: &mut Template, is_here: &impl Fn(&CodeHash) -> bool) -> bool {
    let Some(workdir) = template.workdir.clone() else { return false };
    let Some(code) = code_in(&workdir) else { return false };
    let command = template.docker_entrypoint.iter().chain(&template.docker_start_cmd);
    let command: Vec<&str> = command.map(String::as_str).collect();
    let is_generated = matches!(command[..], [_, CODE_SUBCOMMAND, dir] if dir == workdir);
    if !is_generated && !is_here(&code) {
        return false;
    }
    if is_generated {
        template.docker_entrypoint.clear();
        template.docker_start_cmd.clear();
    }
    template.workdir = Some(code.workdir());
    true
}

/// Returns the hash in a path `/…/code/<name>/<hash>`; `None` for any other path.
fn code_in(workdir: &str) -> Option<CodeHash> {
    let mut parts = Path::new(workdir).components().rev();
    let Component::Normal(hash) = parts.next()? else { return None };
    parts.next()?;
    let is_code = parts.next()? == Component::Normal(CODE_DIR.as_ref());
    hash.to_str()?.parse().ok().filter(|_| is_code && workdir.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::tests::a_template;

    fn converted(command: &[&str], workdir: &str, is_here: bool) -> Option<Template> {
        let mut template = Template {
            docker_entrypoint: Vec::new(),
            docker_start_cmd: command.iter().map(|&word| word.to_owned()).collect(),
            workdir: Some(workdir.to_owned()),
            ..a_template()
        };
        let before = template.clone();
        if convert(&mut template, &|_| is_here) {
            return Some(template);
        }
        assert_eq!(template, before);
        None
    }

    #[test]
    fn a_directory_of_code_becomes_its_hash_wherever_it_was() {
        let hash = "5e".repeat(32);
        let dir = format!("/old/place/code/hello/{hash}");
        let run = converted(&["/old/longshore", "code-worker", &dir], &dir, false).unwrap();
        assert_eq!(run.workdir, Some(format!("code:{hash}")));
        assert!(run.docker_start_cmd.is_empty());
        let own = converted(&["python", "-u", "handler.py"], &dir, true).unwrap();
        assert_eq!(own.workdir, Some(format!("code:{hash}")));
        assert_eq!(own.docker_start_cmd, ["python", "-u", "handler.py"]);
    }

    #[test]
    fn other_workdirs_are_unchanged() {
        let hash = "5e".repeat(32);
        assert!(converted(&["python"], &format!("/old/code/hello/{hash}"), false).is_none());
        for workdir in [
            "/srv/hello",
            "/",
            "",
            "/srv/code/hello/5e",
            &format!("code:{hash}"),
            &format!("/srv/other/hello/{hash}"),
            &format!("code/hello/{hash}"),
        ] {
            assert!(converted(&["x", "code-worker", workdir], workdir, true).is_none(), "{workdir}");
        }
    }
}
