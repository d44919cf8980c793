//! Templates that name deployed code by its folder, as an older program wrote them, name it by its hash from then on.

use std::path::{Component, Path};

use longshore_model::{CodeHash, Template};
use longshore_store::{StoreError, Write};
use longshore_vault::Keyring;

use crate::secrets::sealed_template;

/// The folder of deployed code in every data folder.
const CODE_FOLDER: &str = "code";
/// What older programs called with the folder of the code to run it.
const CODE_SUBCOMMAND: &str = "code-worker";

/// Changes those templates, and answers what should be written anew. `is_here` says whether this server has the code.
pub(crate) fn name_by_hash(
    vault: &Keyring,
    templates: &mut [Template],
    is_here: impl Fn(&CodeHash) -> bool,
) -> Result<Vec<Write>, StoreError> {
    let mut writes = Vec::new();
    for template in templates {
        if convert(template, &is_here) {
            writes.push(Write::PutTemplate(Box::new(sealed_template(vault, template)?)));
        }
    }
    Ok(writes)
}

/// The folder may be that of another machine, or of a data folder that was moved: its path says which code it was.
fn convert(template: &mut Template, is_here: &impl Fn(&CodeHash) -> bool) -> bool {
    let Some(workdir) = template.workdir.clone() else { return false };
    let Some(code) = code_in(&workdir) else { return false };
    let command = template.docker_entrypoint.iter().chain(&template.docker_start_cmd);
    let command: Vec<&str> = command.map(String::as_str).collect();
    let is_made_by_us = matches!(command[..], [_, CODE_SUBCOMMAND, folder] if folder == workdir);
    if !is_made_by_us && !is_here(&code) {
        return false;
    }
    if is_made_by_us {
        template.docker_entrypoint.clear();
        template.docker_start_cmd.clear();
    }
    template.workdir = Some(code.workdir());
    true
}

/// `/any/where/code/<name>/<hash>`.
fn code_in(workdir: &str) -> Option<CodeHash> {
    let mut parts = Path::new(workdir).components().rev();
    let Component::Normal(hash) = parts.next()? else { return None };
    parts.next()?;
    let is_code = parts.next()? == Component::Normal(CODE_FOLDER.as_ref());
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
    fn a_folder_of_code_becomes_its_hash_wherever_it_was() {
        let hash = "5e".repeat(32);
        let folder = format!("/old/place/code/hello/{hash}");
        let run = converted(&["/old/longshore", "code-worker", &folder], &folder, false).unwrap();
        assert_eq!(run.workdir, Some(format!("code:{hash}")));
        assert!(run.docker_start_cmd.is_empty());
        let own = converted(&["python", "-u", "handler.py"], &folder, true).unwrap();
        assert_eq!(own.workdir, Some(format!("code:{hash}")));
        assert_eq!(own.docker_start_cmd, ["python", "-u", "handler.py"]);
    }

    #[test]
    fn other_folders_stay_what_they_are() {
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
