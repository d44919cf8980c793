//! Whether what a power cut left is what had been promised.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use longshore_disk_faults::{Disk, Files, Loss, Step};

use super::rebuilt::{Content, References, open};
use super::workload::Workload;

/// What had been acknowledged at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Promise {
    epoch: u64,
    /// The last batch that may not be lost.
    synced: u64,
    /// The last batch that may not be lost unless the power goes.
    buffered: u64,
}

impl Promise {
    /// One for each step.
    pub fn after_each(steps: &[Step]) -> Vec<Self> {
        let mut promise = Self::default();
        let after = |step: &Step| {
            if let Some((what, number)) = step.mark().and_then(|mark| mark.split_once(' ')) {
                let number: u64 = number.parse().unwrap();
                match what {
                    "epoch" => promise.epoch = number,
                    "synced" => (promise.synced, promise.buffered) = (number, number),
                    "buffered" => promise.buffered = number,
                    "refused" => {}
                    other => panic!("{other}"),
                }
            }
            promise
        };
        steps.iter().map(after).collect()
    }
}

/// What all cuts of a record came to.
pub struct Verdicts {
    references: References,
    /// What was found in the folders that were opened; most cuts leave what another one left.
    opened: Mutex<HashMap<u64, Result<Content, String>>>,
    cuts: AtomicUsize,
    violations: Mutex<Vec<String>>,
}

impl Verdicts {
    pub fn new(workload: &Workload) -> Self {
        let references = References::new(workload);
        Self { references, opened: Mutex::default(), cuts: AtomicUsize::new(0), violations: Mutex::default() }
    }

    /// Cuts here in every way.
    pub fn judge(&self, prefix: usize, disk: &Disk<'_>, promise: &Promise) {
        for loss in Loss::ALL {
            self.cuts.fetch_add(1, Ordering::Relaxed);
            let verdict = self.content(&disk.cut(loss, prefix as u64)).and_then(|content| {
                let promised = if loss == Loss::Nothing { promise.buffered } else { promise.synced };
                self.references.check(&content, promise.epoch, promised)
            });
            if let Err(text) = verdict {
                self.violations.lock().unwrap().push(format!("prefix {prefix}, {loss:?}: {text}"));
            }
        }
    }

    fn content(&self, files: &Files) -> Result<Content, String> {
        let mut hasher = DefaultHasher::new();
        files.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(found) = self.opened.lock().unwrap().get(&hash) {
            return found.clone();
        }
        let found = open(files);
        self.opened.lock().unwrap().insert(hash, found.clone());
        found
    }

    pub fn expect_no_loss(&self) {
        let violations = self.violations.lock().unwrap();
        let first: Vec<_> = violations.iter().take(20).collect();
        assert!(violations.is_empty(), "{} violations, such as {first:#?}", violations.len());
    }

    pub fn expect_losses(&self) {
        let violations = self.violations.lock().unwrap();
        assert!(violations.iter().any(|text| text.contains("is lost")), "{violations:#?}");
    }
}

impl fmt::Display for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cuts, opened) = (self.cuts.load(Ordering::Relaxed), self.opened.lock().unwrap().len());
        let violations = self.violations.lock().unwrap().len();
        write!(f, "{cuts} cuts, {opened} different folders opened, {violations} violations")
    }
}
