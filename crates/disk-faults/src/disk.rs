//! What of a recorded folder is durable, and what a power cut may leave of the rest.

use std::collections::{BTreeMap, HashMap};

use crate::files::Files;
use crate::random::Random;
use crate::record::{Op, Step};

/// A disk writes this much at once or not at all.
const SECTOR_BYTES: usize = 512;

/// What a power cut does to what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It is all there, as after a crash of the program alone.
    Nothing,
    /// None of it is there.
    Everything,
    /// Each write and each name is there or not.
    Writes,
    /// Each sector is there or not; files may have grown without their content.
    Sectors,
    /// All is there but the end of each file's last write.
    Tail,
    /// Some of it is there, written in another order.
    Order,
}

impl Loss {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Nothing, Self::Everything, Self::Writes, Self::Sectors, Self::Tail, Self::Order];
}

/// A folder on a disk, as far as the record was followed.
#[derive(Debug)]
pub struct Disk<'a> {
    /// Decides what a failed sync left on disk; without it, nothing.
    given_up: Option<Random>,
    /// Whether syncs are ignored.
    lies: bool,
    nodes: Vec<Node<'a>>,
    /// The latest node of each inode.
    inodes: HashMap<u64, usize>,
    /// When the syncs under way began, and on what.
    syncs: HashMap<u64, (usize, u64)>,
    steps: u64,
}

/// A file or folder: what is durable, what happened since (with its step), and what programs see.
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

/// A name leads to a node from now on, or to nothing.
#[derive(Clone, Debug)]
struct Naming(String, Option<usize>);

impl<'a> Disk<'a> {
    /// A disk before the first step. What a failed sync should have covered is lost.
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

    /// What a failed sync should have covered is on disk or not, sector by sector.
    #[must_use]
    pub fn failed_syncs_leave_some(mut self, seed: u64) -> Self {
        self.given_up = Some(Random(seed));
        self
    }

    /// A disk that says that it has synced, and has not.
    #[must_use]
    pub fn lying(mut self) -> Self {
        self.lies = true;
        self
    }

    /// Follows the record by one step.
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

    /// A folder that a power cut may leave now. The same seed answers the same.
    pub fn cut(&self, loss: Loss, seed: u64) -> Files {
        let mut left = Files::default();
        if !self.nodes.is_empty() {
            self.collect(0, "", loss, &mut Random(seed), &mut left);
        }
        left
    }

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

    /// What a name leads to as the program sees it.
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
    /// What happened before the step is durable.
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

    /// A sync failed. A file's changes count as written from now on, whatever became of them; names are kept in
    /// the file system's journal, which tries again.
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

    /// The change's parts, none of which crosses the border of a sector.
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

/// Applies to the content what a power cut leaves of the pending changes.
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

fn length_after(before: usize, changes: &[Change<'_>]) -> usize {
    changes.iter().fold(before, |length, change| match change {
        Change::Write { at, data } => length.max(at + data.len()),
        Change::Length(length) => *length,
    })
}
