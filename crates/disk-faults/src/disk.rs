//! The model of a recorded folder: its durable content, and the pending changes that a power cut may lose.

use std::collections::{BTreeMap, HashMap};

use crate::files::Files;
use crate::random::Random;
use crate::record::{Op, Step};

/// Bytes that a disk writes atomically.
const SECTOR_BYTES: usize = 512;

/// What a power cut does to changes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Every change is kept, as after a crash of the program alone.
    Nothing,
    /// Every change is lost.
    Everything,
    /// Each write and each name is kept or lost.
    Writes,
    /// Each sector is kept or lost; files may have grown without their content.
    Sectors,
    /// Every change is kept but the end of each file's last write.
    Tail,
    /// Some changes are kept, applied in another order.
    Order,
}

impl Loss {
    /// Every kind of loss.
    pub const ALL: [Self; 6] =
        [Self::Nothing, Self::Everything, Self::Writes, Self::Sectors, Self::Tail, Self::Order];
}

/// A folder on a disk after the steps of a record that were applied.
#[derive(Debug)]
pub struct Disk<'a> {
    /// Decides which sectors a failed sync left on disk; `None` leaves none.
    given_up: Option<Random>,
    /// Whether syncs are ignored.
    lies: bool,
    nodes: Vec<Node<'a>>,
    /// The latest node of each inode.
    inodes: HashMap<u64, usize>,
    /// The node and the first step of each sync in flight.
    syncs: HashMap<u64, (usize, u64)>,
    steps: u64,
}

/// A file or folder: the durable content, the later changes with their steps, and the content that programs see.
#[derive(Debug)]
enum Node<'a> {
    File { durable: Vec<u8>, pending: Vec<(u64, Change<'a>)>, live: Vec<u8> },
    Folder { durable: Names, pending: Vec<(u64, Naming)>, live: Names },
}

type Names = BTreeMap<String, usize>;

#[derive(Clone, Copy, Debug)]
enum Change<'a> {
    Write { at: usize, data: &'a [u8] },
    Length(usize),
}

/// A change of a folder: the name gets another node, or is removed.
#[derive(Clone, Debug)]
struct Naming(String, Option<usize>);

impl<'a> Disk<'a> {
    /// Returns an empty disk, before the first step of a record. Changes that a failed sync should have covered are lost.
    pub fn new() -> Self {
        Self {
            given_up: None,
            lies: false,
            nodes: Vec::new(),
            inodes: HashMap::new(),
            syncs: HashMap::new(),
            steps: 0,
        }
    }

    /// Makes a failed sync leave some of the sectors that it should have covered. The seed decides which.
    #[must_use]
    pub fn failed_syncs_leave_some(mut self, seed: u64) -> Self {
        self.given_up = Some(Random(seed));
        self
    }

    /// Makes the disk ignore syncs and report success.
    #[must_use]
    pub fn lying(mut self) -> Self {
        self.lies = true;
        self
    }

    /// Applies the next step of the record. Steps must be applied in order.
    pub fn apply(&mut self, step: &'a Step) {
        self.steps += 1;
        match &step.op {
            Op::Folder { name, .. } if name.is_empty() && !self.nodes.is_empty() => {}
            Op::Folder { name, file } => {
                let (durable, live) = (Names::new(), Names::new());
                self.add(name, *file, Node::Folder { durable, pending: Vec::new(), live });
            }
            Op::Created { name, file } => {
                self.add(
                    name,
                    *file,
                    Node::File { durable: Vec::new(), pending: Vec::new(), live: Vec::new() },
                );
            }
            Op::Written { file, at, data } => self.change(*file, Change::Write { at: *at as usize, data }),
            Op::Truncated { file, length } => self.change(*file, Change::Length(*length as usize)),
            Op::SyncBegan { file, sync } => {
                if let Some(&node) = self.inodes.get(file).filter(|_| !self.lies) {
                    self.syncs.insert(*sync, (node, self.steps));
                }
            }
            Op::SyncEnded { sync } => {
                if let Some((node, began)) = self.syncs.remove(sync) {
                    self.nodes[node].settle(began);
                }
            }
            Op::SyncFailed { file } => {
                if let Some(&node) = self.inodes.get(file) {
                    self.nodes[node].give_up(self.given_up.as_mut());
                }
            }
            Op::Renamed { from, to } => {
                let node = self.lookup(from);
                self.name(from, None);
                self.name(to, node);
            }
            Op::Removed { name } => self.name(name, None),
            Op::Marked(_) => {}
        }
    }

    /// Returns a folder that a power cut at this step may leave. The same seed returns the same folder.
    pub fn cut(&self, loss: Loss, seed: u64) -> Files {
        let mut left = Files::default();
        if !self.nodes.is_empty() {
            self.collect(0, "", loss, &mut Random(seed), &mut left);
        }
        left
    }

    /// Adds the node and everything below it to `left`, after the loss.
    fn collect(&self, node: usize, name: &str, loss: Loss, random: &mut Random, left: &mut Files) {
        match &self.nodes[node] {
            Node::File { live, .. } if loss == Loss::Nothing => {
                left.files.insert(name.to_owned(), live.clone());
            }
            Node::File { durable, pending, .. } => {
                let mut content = durable.clone();
                let pending: Vec<Change<'_>> = pending.iter().map(|(_, change)| *change).collect();
                lose(&mut content, &pending, loss, random);
                left.files.insert(name.to_owned(), content);
            }
            Node::Folder { durable, pending, .. } => {
                if !name.is_empty() {
                    left.folders.push(name.to_owned());
                }
                let mut names = durable.clone();
                for (_, Naming(name, node)) in pending {
                    let kept = match loss {
                        Loss::Nothing | Loss::Tail => true,
                        Loss::Everything => false,
                        Loss::Writes | Loss::Sectors | Loss::Order => random.coin(),
                    };
                    match node {
                        _ if !kept => {}
                        Some(node) => _ = names.insert(name.clone(), *node),
                        None => _ = names.remove(name),
                    }
                }
                for (part, node) in names {
                    let name = if name.is_empty() { part } else { format!("{name}/{part}") };
                    self.collect(node, &name, loss, random, left);
                }
            }
        }
    }

    /// Adds the node of a new file or folder, and its name.
    fn add(&mut self, name: &str, inode: u64, node: Node<'a>) {
        let number = self.nodes.len();
        self.nodes.push(node);
        self.inodes.insert(inode, number);
        if !name.is_empty() {
            self.name(name, Some(number));
        }
    }

    fn change(&mut self, inode: u64, change: Change<'a>) {
        if let Some(&node) = self.inodes.get(&inode)
            && let Node::File { pending, live, .. } = &mut self.nodes[node]
        {
            change.apply(live);
            pending.push((self.steps, change));
        }
    }

    /// Makes the path lead to another node, or to none.
    fn name(&mut self, path: &str, leads_to: Option<usize>) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = self.lookup(folder);
        if let Some(Node::Folder { pending, live, .. }) = folder.map(|folder| &mut self.nodes[folder]) {
            match leads_to {
                Some(node) => live.insert(name.to_owned(), node),
                None => live.remove(name),
            };
            pending.push((self.steps, Naming(name.to_owned(), leads_to)));
        }
    }

    /// Returns the node of a path as programs see it; `None` if the path does not exist.
    fn lookup(&self, path: &str) -> Option<usize> {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.into_iter().try_fold(0, |folder, part| match &self.nodes[folder] {
            Node::Folder { live, .. } => live.get(part).copied(),
            Node::File { .. } => None,
        })
    }
}

impl Default for Disk<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl Node<'_> {
    /// Makes the changes before the step durable.
    fn settle(&mut self, before: u64) {
        match self {
            Self::File { durable, pending, .. } => {
                let settled = pending.iter().take_while(|(step, _)| *step < before).count();
                pending.drain(..settled).for_each(|(_, change)| change.apply(durable));
            }
            Self::Folder { durable, pending, .. } => {
                let settled = pending.iter().take_while(|(step, _)| *step < before).count();
                for (_, Naming(name, node)) in pending.drain(..settled) {
                    match node {
                        Some(node) => durable.insert(name, node),
                        None => durable.remove(&name),
                    };
                }
            }
        }
    }

    /// Applies a failed sync. A file's pending changes count as written, and no later sync writes them. Names are in the
    /// file system's journal, which retries.
    fn give_up(&mut self, random: Option<&mut Random>) {
        let Self::File { durable, pending, .. } = self else { return };
        let changes: Vec<Change<'_>> = pending.drain(..).map(|(_, change)| change).collect();
        if let Some(random) = random {
            lose(durable, &changes, Loss::Sectors, random);
        }
    }
}

impl Change<'_> {
    fn apply(self, content: &mut Vec<u8>) {
        match self {
            Self::Write { at, data } => {
                if content.len() < at + data.len() {
                    content.resize(at + data.len(), 0);
                }
                content[at..at + data.len()].copy_from_slice(data);
            }
            Self::Length(length) => content.resize(length, 0),
        }
    }

    /// Splits the change at the borders of sectors.
    fn sectors(self) -> Vec<Self> {
        let Self::Write { at, mut data } = self else { return vec![self] };
        let (mut at, mut parts) = (at, Vec::new());
        while !data.is_empty() {
            let (part, rest) = data.split_at(data.len().min(SECTOR_BYTES - at % SECTOR_BYTES));
            parts.push(Self::Write { at, data: part });
            (at, data) = (at + part.len(), rest);
        }
        parts
    }
}

/// Applies the pending changes that a power cut leaves to the content.
fn lose(content: &mut Vec<u8>, pending: &[Change<'_>], loss: Loss, random: &mut Random) {
    match loss {
        Loss::Nothing => pending.iter().for_each(|change| change.apply(content)),
        Loss::Everything => {}
        Loss::Writes => pending.iter().filter(|_| random.coin()).for_each(|change| change.apply(content)),
        Loss::Sectors => {
            let length = length_after(content.len(), pending);
            for part in pending.iter().flat_map(|change| change.sectors()) {
                if random.coin() {
                    part.apply(content);
                }
            }
            if random.coin() && content.len() < length {
                content.resize(length, 0);
            }
        }
        Loss::Tail => {
            let Some((last, before)) = pending.split_last() else { return };
            for change in before {
                change.apply(content);
            }
            let parts = last.sectors();
            let kept = random.below(parts.len() as u64) as usize;
            parts[..kept].iter().for_each(|part| part.apply(content));
        }
        Loss::Order => {
            let mut shuffled = pending.to_vec();
            random.shuffle(&mut shuffled);
            let kept = random.below(shuffled.len() as u64 + 1) as usize;
            shuffled[..kept].iter().for_each(|change| change.apply(content));
        }
    }
}

/// The length of a file after changes.
fn length_after(before: usize, changes: &[Change<'_>]) -> usize {
    changes.iter().fold(before, |length, change| match change {
        Change::Write { at, data } => length.max(at + data.len()),
        Change::Length(length) => *length,
    })
}
