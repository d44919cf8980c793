//! Whether what a power cut left is what had been promised.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use longshore_disk_faults::{Disk, Files, Loss, Random, Step};

use super::rebuilt::{Content, References, open};
use super::workload::Workload;

/// What had been acknowledged at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Promise {
    now: Duration,
    epoch: u64,
    /// The last batch that may not be lost.
    synced: u64,
    /// The last batch that may not be lost unless the power goes, and when the first behind `synced` was
    /// acknowledged.
    buffered: u64,
    buffered_since: Option<Duration>,
    /// The batch that was refused at this very moment.
    refused: Option<u64>,
}

impl Promise {
    /// One for each step.
    pub fn after_each(steps: &[Step]) -> Vec<Self> {
        let mut promise = Self::default();
        let after = |step: &Step| {
            promise.now = step.time;
            promise.refused = None;
            if let Some((what, number)) = step.mark().and_then(|mark| mark.split_once(' ')) {
                promise.note(what, number.parse().unwrap(), step.time);
            }
            promise
        };
        steps.iter().map(after).collect()
    }

    fn note(&mut self, what: &str, number: u64, time: Duration) {
        match what {
            "epoch" => self.epoch = number,
            "synced" => (self.synced, self.buffered, self.buffered_since) = (number, number, None),
            "buffered" => {
                self.buffered = number;
                self.buffered_since.get_or_insert(time);
            }
            "refused" => self.refused = Some(number),
            "closed" => {}
            other => panic!("{other}"),
        }
    }
}

/// What all cuts of a record came to.
pub struct Verdicts {
    references: References,
    /// What was found in the folders that were opened; most cuts leave what another one left.
    opened: Mutex<HashMap<u64, Result<Content, String>>>,
    cuts: AtomicUsize,
    refused: AtomicUsize,
    violations: Mutex<Vec<String>>,
    /// The longest time that a buffered batch was acknowledged and could still get lost.
    exposed: Mutex<Duration>,
}

impl Verdicts {
    pub fn new(workload: &Workload) -> Self {
        Self {
            references: References::new(workload),
            opened: Mutex::default(),
            cuts: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            violations: Mutex::default(),
            exposed: Mutex::default(),
        }
    }

    /// Cuts here in every way.
    pub fn judge(&self, prefix: usize, disk: &Disk<'_>, promise: &Promise) {
        for loss in Loss::ALL {
            self.cuts.fetch_add(1, Ordering::Relaxed);
            let content = self.content(&disk.cut(loss, prefix as u64));
            if let Err(text) = content.and_then(|content| self.check(&content, loss, promise)) {
                self.violations.lock().unwrap().push(format!("prefix {prefix}, {loss:?}: {text}"));
            }
        }
    }

    /// Damages the folder after an orderly end, `ways` times: every acknowledged batch is there, or opening is refused.
    pub fn judge_damaged(&self, prefix: usize, disk: &Disk<'_>, promise: &Promise, ways: u64) {
        for seed in 0..ways {
            self.cuts.fetch_add(1, Ordering::Relaxed);
            let loss = if seed % 2 == 0 { Loss::Nothing } else { Loss::Everything };
            let mut files = disk.cut(loss, prefix as u64);
            let mut random = Random(seed << 32 | prefix as u64);
            let Some(done) = files.damage(&mut random, |name| name.starts_with("log")) else { continue };
            let verdict = match open(&files) {
                Ok(content) => self.references.check(&content, promise.epoch, promise.buffered),
                Err(text) if text.contains("`log/") || text.contains("`log-end`") => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
                Err(text) => Err(text),
            };
            if let Err(text) = verdict {
                self.violations.lock().unwrap().push(format!("prefix {prefix}, {loss:?}, {done}: {text}"));
            }
        }
    }

    /// How often a damaged folder was refused.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    fn check(&self, content: &Content, loss: Loss, promise: &Promise) -> Result<(), String> {
        let promised = if loss == Loss::Nothing { promise.buffered } else { promise.synced };
        self.references.check(content, promise.epoch, promised)?;
        if loss == Loss::Nothing && promise.refused.is_some_and(|refused| content.batches >= refused) {
            return Err(format!("batch {} was refused and is there", content.batches));
        }
        if let Some(since) = promise.buffered_since.filter(|_| content.batches < promise.buffered) {
            let mut exposed = self.exposed.lock().unwrap();
            *exposed = promise.now.saturating_sub(since).max(*exposed);
        }
        Ok(())
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
        let (violations, exposed) = (self.violations.lock().unwrap().len(), *self.exposed.lock().unwrap());
        write!(
            f,
            "{cuts} cuts, {opened} different folders opened, {violations} violations, \
             buffered commits exposed for up to {exposed:?}"
        )
    }
}
