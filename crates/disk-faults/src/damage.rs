//! Damages files at rest, as a bad disk or a mistaken user does.

use crate::files::Files;
use crate::random::Random;

const PAGE_BYTES: usize = 4096;

impl Files {
    /// Damages one of the files whose name passes `filter`: flips a bit, zeroes a page, truncates or removes the file.
    /// Returns a description of the damage; `None` if there is no such file.
    pub fn damage(&mut self, random: &mut Random, filter: impl Fn(&str) -> bool) -> Option<String> {
        let names: Vec<String> = self.files.keys().filter(|name| filter(name)).cloned().collect();
        let name = names.get(random.below(names.len() as u64) as usize)?.clone();
        let content = self.files.get_mut(&name)?;
        let at = random.below(content.len() as u64) as usize;
        let done = match random.below(4) {
            0 if !content.is_empty() => {
                content[at] ^= 1 << random.below(8);
                format!("a bit of byte {at} of {name} flipped")
            }
            1 if !content.is_empty() => {
                let page = at / PAGE_BYTES * PAGE_BYTES;
                let end = content.len().min(page + PAGE_BYTES);
                content[page..end].fill(0);
                format!("the page at byte {page} of {name} zeroed")
            }
            2 => {
                content.truncate(at);
                format!("{name} cut at {at}")
            }
            _ => {
                self.files.remove(&name);
                format!("{name} removed")
            }
        };
        Some(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_damage_changes_one_matching_file() {
        let mut whole = Files::default();
        whole.files.insert("log/1".into(), vec![7; 10_000]);
        whole.files.insert("log/2".into(), vec![7; 10]);
        whole.files.insert("other".into(), vec![7; 10]);
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..60 {
            let mut files = whole.clone();
            let done = files.damage(&mut Random(seed), |name| name.starts_with("log/")).unwrap();
            kinds.extend(
                ["flipped", "zeroed", "cut", "removed"].into_iter().filter(|kind| done.contains(kind)),
            );
            let same =
                whole.files.iter().filter(|(name, content)| files.files.get(*name) == Some(content)).count();
            assert_eq!((same, files.files["other"].len()), (2, 10), "{done}");
        }
        assert_eq!(kinds.len(), 4);
        assert_eq!(whole.damage(&mut Random(1), |_| false), None);
    }
}
