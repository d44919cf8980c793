//! How workers get the worker runtime: as the first entry of `PYTHONPATH`.

use std::collections::BTreeMap;
use std::path::Path;

/// The variable with the folders that Python searches first.
const PYTHON_PATH: &str = "PYTHONPATH";
/// The variable by which a template turns the worker runtime off.
const SWITCH: &str = "LONGSHORE_RUNTIME";

/// Puts `folder` before the entries of the template's `PYTHONPATH`, or before `inherited`, the server's own, which the
/// worker would have got. Changes nothing if the template turns the runtime off.
pub fn put_first(env: &mut BTreeMap<String, String>, folder: &Path, inherited: Option<String>) {
    // A path with a colon would be two entries.
    let Some(folder) = folder.to_str().filter(|path| !is_off(env) && !path.contains(':')) else { return };
    let others = env.remove(PYTHON_PATH).or(inherited).filter(|path| !path.is_empty());
    let path = others.map_or_else(|| folder.to_owned(), |others| format!("{folder}:{others}"));
    env.insert(PYTHON_PATH.to_owned(), path);
}

/// Whether a template turns the worker runtime off.
pub(crate) fn is_off(env: &BTreeMap<String, String>) -> bool {
    env.get(SWITCH).is_some_and(|value| value.trim().eq_ignore_ascii_case("off"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of(template: &[(&str, &str)], folder: &str, inherited: Option<&str>) -> Option<String> {
        let own = template.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let mut env: BTreeMap<_, _> = own.collect();
        put_first(&mut env, Path::new(folder), inherited.map(str::to_owned));
        env.remove(PYTHON_PATH)
    }

    #[test]
    fn the_runtime_comes_first_and_other_entries_stay() {
        assert_eq!(path_of(&[], "/r", None).unwrap(), "/r");
        assert_eq!(path_of(&[], "/r", Some("")).unwrap(), "/r");
        assert_eq!(path_of(&[], "/r", Some("/a:/b")).unwrap(), "/r:/a:/b");
        assert_eq!(path_of(&[(PYTHON_PATH, "/own")], "/r", Some("/a")).unwrap(), "/r:/own");
    }

    #[test]
    fn a_template_turns_the_runtime_off() {
        assert_eq!(path_of(&[(SWITCH, "off")], "/r", None), None);
        assert_eq!(path_of(&[(SWITCH, " OFF"), (PYTHON_PATH, "/own")], "/r", None).unwrap(), "/own");
        assert_eq!(path_of(&[(SWITCH, "on")], "/r", None).unwrap(), "/r");
        assert_eq!(path_of(&[], "/a:b", None), None, "a folder that PYTHONPATH cannot name");
    }
}
