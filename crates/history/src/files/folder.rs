//! The folder of the history: which file has which days, and when files are closed and removed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use longshore_model::EndpointId;

use super::block::{Block, parsed};
use super::calendar::{day_name, month_name};
use super::log::Appender;
use super::reader::Reader;
use super::{closed, log};
use crate::{Buckets, DAY_MS, Field, HOUR_MS, MINUTE_MS, Record};

/// How many days minutes stay, and how many days hours stay.
const MINUTES_DAYS: u64 = 30;
const HOURS_DAYS: u64 = 400;
const MINUTES_OF_HOUR: u64 = HOUR_MS / MINUTE_MS;

/// The length of what one record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Each record is of one minute.
    Minute,
    /// Each record is of one hour.
    Hour,
}

impl Unit {
    /// The length in ms.
    pub(crate) fn ms(self) -> u64 {
        match self {
            Self::Minute => MINUTE_MS,
            Self::Hour => HOUR_MS,
        }
    }
}

/// The files of the history. One server at a time has them open.
#[derive(Debug)]
pub(crate) struct Folder {
    minutes: PathBuf,
    hours: PathBuf,
    bytes_max: u64,
    logs: Appender,
    /// The day that the last block was of.
    day: Option<u64>,
}

impl Folder {
    /// Opens the folder, which is made if it is missing. Minutes have about `bytes_max` bytes at most.
    ///
    /// # Errors
    ///
    /// The folder cannot be made. Files that are no history are logged, and get the end `.foreign`.
    pub(crate) fn open(path: &Path, bytes_max: u64) -> io::Result<Self> {
        let (minutes, hours) = (path.join("minutes"), path.join("hours"));
        let folder = Self { minutes, hours, bytes_max, logs: Appender::default(), day: None };
        for dir in [&folder.minutes, &folder.hours] {
            fs::create_dir_all(dir)?;
            for log in names(dir, ".log") {
                let path = dir.join(log);
                if let Err(error) = log::repair(&path) {
                    set_aside(&path, &error);
                }
            }
        }
        Ok(folder)
    }

    /// Appends blocks of minutes, and removes them from `blocks`. The first one of a day closes the days before.
    ///
    /// # Errors
    ///
    /// The blocks that are left could not be written.
    pub(crate) fn append(&mut self, blocks: &mut Vec<Block>) -> io::Result<()> {
        let day_of = |block: &Block| block.unit * MINUTE_MS / DAY_MS;
        while let Some(day) = blocks.first().map(day_of) {
            if self.day != Some(day) {
                self.tidy(day);
                self.day = Some(day);
            }
            let count = blocks.iter().take_while(|block| day_of(block) == day).count();
            self.logs.append(&self.minutes_log(day), &blocks[..count])?;
            blocks.drain(..count);
        }
        Ok(())
    }

    /// Adds minutes of another server to the logs of their days. A minute that a log has already is not added again.
    ///
    /// # Errors
    ///
    /// Some minutes could not be written.
    pub(crate) fn add(&mut self, minutes: Vec<Block>) -> io::Result<()> {
        let mut days: BTreeMap<u64, Vec<Block>> = BTreeMap::new();
        for block in minutes {
            days.entry(block.unit.saturating_mul(MINUTE_MS) / DAY_MS).or_default().push(block);
        }
        for (day, mut blocks) in days {
            let log = self.minutes_log(day);
            log::read(&log, |present| {
                blocks.retain(|block| block.unit != present.unit || *block != present.decoded());
            })?;
            self.logs.append(&log, &blocks)?;
        }
        Ok(())
    }

    fn minutes_log(&self, day: u64) -> PathBuf {
        self.minutes.join(format!("{}.log", day_name(day)))
    }

    /// Closes the days before `today`, and removes what is too old or over the budget. What fails is logged.
    fn tidy(&mut self, today: u64) {
        let present = day_name(today);
        for name in names(&self.minutes, ".log") {
            let path = self.minutes.join(&name);
            let date = name.trim_end_matches(".log");
            if date < present.as_str()
                && let Err(error) = self.close_day(&path, date)
            {
                not_closed(&path, &error);
            }
        }
        let month = month_name(today);
        for name in names(&self.hours, ".log") {
            let path = self.hours.join(&name);
            if name.trim_end_matches(".log") < month.as_str()
                && let Err(error) = close(&path, &path.with_extension("month"))
            {
                not_closed(&path, &error);
            }
        }
        let oldest_day = day_name(today.saturating_sub(MINUTES_DAYS));
        let oldest_month = month_name(today.saturating_sub(HOURS_DAYS));
        let days = names(&self.minutes, ".day");
        days.iter().filter(|name| **name < oldest_day).for_each(|name| remove(&self.minutes.join(name)));
        let months = names(&self.hours, ".month");
        months.iter().filter(|name| **name < oldest_month).for_each(|name| remove(&self.hours.join(name)));
        self.keep_budget();
    }

    /// Removes the oldest days while the minutes have more bytes than the budget.
    fn keep_budget(&self) {
        let size = |name: &String| fs::metadata(self.minutes.join(name)).map_or(0, |metadata| metadata.len());
        let days = names(&self.minutes, ".day");
        let mut bytes: u64 = days.iter().chain(&names(&self.minutes, ".log")).map(size).sum();
        for day in &days {
            if bytes <= self.bytes_max {
                return;
            }
            bytes -= size(day);
            tracing::info!(day, "oldest minutes of the history removed, `history_bytes_max` is reached");
            remove(&self.minutes.join(day));
        }
    }

    /// Adds the hours of a day to their month, and closes the day.
    fn close_day(&mut self, log: &Path, date: &str) -> io::Result<()> {
        let mut hours = hours_of(log)?;
        let month = self.hours.join(format!("{}.log", &date[..date.len().min(7)]));
        // A server that was killed between the two steps had added these hours already.
        log::read(&month, |present| {
            let is_known = |hour: &Block| hour.unit == present.unit && *hour == present.decoded();
            hours.retain(|hour| !is_known(hour));
        })?;
        self.logs.append(&month, &hours)?;
        close(log, &log.with_extension("day"))
    }

    /// Whether there are minutes from before this time, in ms.
    pub(crate) fn has_minutes_before(&self, at: u64) -> bool {
        let date = day_name(at / DAY_MS);
        if [".day", ".log"].iter().any(|end| names(&self.minutes, end).iter().any(|name| **name < *date)) {
            return true;
        }
        let mut first: Option<u64> = None;
        // A file that cannot be read has no minutes. Those of another server stand behind.
        let _ = log::read(&self.minutes.join(format!("{date}.log")), |block| {
            let at = block.unit.saturating_mul(MINUTE_MS);
            first = Some(first.map_or(at, |first| first.min(at)));
        });
        first.is_some_and(|first| first < at)
    }

    /// Whether only hours reach back to this time, in ms: its minutes were removed.
    pub(crate) fn has_only_hours_at(&self, at: u64) -> bool {
        let day = day_name(at / DAY_MS);
        let days = [".day", ".log"].into_iter().flat_map(|end| names(&self.minutes, end)).min();
        if days.as_ref().is_some_and(|oldest| oldest.get(..day.len()) <= Some(&day)) {
            return false;
        }
        let month = month_name(at / DAY_MS);
        let months = [".month", ".log"].into_iter().flat_map(|end| names(&self.hours, end));
        let is_between = |name: &String| {
            let oldest = days.as_ref().and_then(|oldest| oldest.get(..month.len()));
            let name = name.get(..month.len());
            name >= Some(month.as_str()) && (oldest.is_none() || name <= oldest)
        };
        // The month of the oldest minutes can have hours of days that have their minutes, too.
        let is_older = |hour: u64| {
            let hour_day = day_name(hour.saturating_mul(HOUR_MS) / DAY_MS);
            hour_day >= day
                && days.as_ref().is_none_or(|oldest| oldest.get(..hour_day.len()) > Some(&hour_day))
        };
        months.filter(is_between).any(|name| {
            let log = self.hours.join(name).with_extension("log");
            closed::Closed::open(&log.with_extension("month"), &log)
                .is_ok_and(|opened| opened.units().any(|(hour, _)| is_older(hour)))
        })
    }

    /// Adds what the files have of each endpoint between `from` and `to` (in ms), and returns when servers started.
    /// Days that cannot be read are logged and left out.
    pub(crate) fn read(
        &self,
        unit: Unit,
        (from, to): (u64, u64),
        endpoints: &mut [(EndpointId, Buckets)],
    ) -> Vec<u64> {
        let mut starts = Vec::new();
        let mut read_month = String::new();
        let days = from / DAY_MS..to.div_ceil(DAY_MS);
        // Hours are of closed days. A day with a log is read by minutes, also if a part of it was closed before.
        let open_days: Vec<_> = days.clone().filter(|day| self.minutes_log(*day).exists()).collect();
        for day in days {
            let (unit, closed, open) = if unit == Unit::Minute || open_days.contains(&day) {
                let log = self.minutes_log(day);
                (Unit::Minute, log.with_extension("day"), log)
            } else if month_name(day) == read_month {
                continue;
            } else {
                read_month = month_name(day);
                let month = self.hours.join(format!("{read_month}.log"));
                (Unit::Hour, month.with_extension("month"), month)
            };
            let mut reader =
                Reader { unit, range: (from, to), open_days: &open_days, endpoints, starts: &mut starts };
            if let Err(error) = reader.file(&closed, &open) {
                tracing::error!(path = %open.display(), %error, "history not read");
            }
        }
        starts
    }
}

/// The hours of a log of minutes, ascending.
fn hours_of(log: &Path) -> io::Result<Vec<Block>> {
    let mut hours: BTreeMap<u64, HourSum> = BTreeMap::new();
    log::read(log, |minute| {
        let hour = hours.entry(minute.unit / MINUTES_OF_HOUR).or_default();
        hour.is_start |= minute.is_start;
        let bit = 1 << (minute.unit % MINUTES_OF_HOUR);
        hour.minutes |= bit;
        for (endpoint, record) in minute.entries().filter_map(parsed) {
            let (sum, minutes) = hour.records.entry(endpoint).or_default();
            sum.extend(&record);
            *minutes |= bit;
        }
    })?;
    Ok(hours.into_iter().map(|(unit, hour)| hour.block(unit)).collect())
}

/// What the minutes of an hour add up to.
#[derive(Default)]
struct HourSum {
    is_start: bool,
    /// The minutes that were recorded, a bit for each.
    minutes: u64,
    /// Of each endpoint the sum, and the minutes in which it was not idle.
    records: BTreeMap<EndpointId, (Record, u64)>,
}

impl HourSum {
    /// The block of the hour. Each endpoint is covered by all minutes, also by those in which it was idle, which are not stored.
    fn block(self, unit: u64) -> Block {
        let whole = |(endpoint, (mut record, minutes)): (EndpointId, (Record, u64))| {
            let idle_ms = u64::from((self.minutes & !minutes).count_ones()) * MINUTE_MS;
            record.set(Field::CoveredMs, record.get(Field::CoveredMs) + idle_ms);
            (endpoint, record)
        };
        Block { unit, is_start: self.is_start, records: self.records.into_iter().map(whole).collect() }
    }
}

/// Closes a log. A closed file that is none is set aside before, so that the log takes its place.
fn close(log: &Path, closed: &Path) -> io::Result<()> {
    match closed::check(closed) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => set_aside(closed, &error),
        checked => checked?,
    }
    closed::close(log, closed)
}

/// Sets a log aside that is none. After another error, such as a full disk, it stays, and the next day tries again.
fn not_closed(log: &Path, error: &io::Error) {
    if error.kind() == io::ErrorKind::InvalidData {
        set_aside(log, error);
    } else {
        tracing::warn!(path = %log.display(), %error, "log of the history not closed, retrying when the next day begins");
    }
}

/// The names of the files in a folder with this end, ascending. Names begin with a date, so the oldest is first.
fn names(dir: &Path, end: &str) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(end) && name.len() > end.len() + 6 && name.is_ascii());
    names.sort_unstable();
    names
}

/// Renames a file that is no history, so that the server can go on without it.
fn set_aside(path: &Path, error: &io::Error) {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".foreign");
    tracing::error!(path = %path.display(), %error, "file of the history is foreign or damaged, renamed to *.foreign");
    if let Err(error) = fs::rename(path, aside) {
        tracing::error!(path = %path.display(), %error, "file not renamed");
    }
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "old history not removed");
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn an_hour_covers_also_the_minutes_in_which_an_endpoint_was_idle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("2030-01-31.log");
        let mut busy = Record::idle(MINUTE_MS);
        busy.set(Field::RunningMs, 10 * MINUTE_MS);
        busy.set(Field::Running, 3);
        let records = vec![(EndpointId::mint(1), busy)];
        let minute = |unit| Block { unit, is_start: false, records: records.clone() };
        let idle = |unit| Block { unit, is_start: false, records: Vec::new() };
        // The minute 122 has two blocks, and of the minute 124 nothing is known.
        let blocks = [idle(120), idle(121), minute(122), idle(122), idle(123)];
        Appender::default().append(&path, &blocks).unwrap();
        let [hour] = &hours_of(&path).unwrap()[..] else { panic!("one hour") };
        let (_, record) = &hour.records[0];
        assert_eq!(record.get(Field::CoveredMs), 4 * MINUTE_MS);
        assert_eq!((record.get(Field::RunningMs), record.get(Field::Running)), (10 * MINUTE_MS, 3));
    }

    #[test]
    fn the_hours_of_many_endpoints_take_seconds_at_most() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("2030-01-31.log");
        let records: Vec<_> = (0..40_000).map(|one| (EndpointId::mint(one), Record::default())).collect();
        let minute = |unit| Block { unit, is_start: false, records: records.clone() };
        Appender::default().append(&path, &[minute(120), minute(121), minute(180)]).unwrap();
        let begun = Instant::now();
        let hours = hours_of(&path).unwrap();
        let elapsed = begun.elapsed();
        let shapes: Vec<_> = hours.iter().map(|hour| (hour.unit, hour.records.len())).collect();
        assert_eq!(shapes, [(2, 40_000), (3, 40_000)]);
        // It takes about 1 s. A search through all endpoints for each record takes 40 times as long.
        assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
    }
}
