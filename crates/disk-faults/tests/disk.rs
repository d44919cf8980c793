//! Records real programs, cuts their disk, and makes their operations fail.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Mutex;

use longshore_disk_faults::{Disk, Files, Loss, Recorded, after_every_step, record};

/// Runs and records a test. Returns the folder that a power cut leaves at each mark, by the text of the mark.
fn cuts<'a>(test: &str, loss: Loss, model: impl Fn(Disk<'a>) -> Disk<'a> + Sync) -> BTreeMap<String, Files> {
    // Leaked, because the disk of the closures borrows the steps.
    let steps: &'static _ = Box::leak(record(test, &[]).unwrap().into_boxed_slice());
    let cuts = Mutex::default();
    after_every_step(
        steps,
        || model(Disk::new()),
        |number, disk| {
            if let Some(mark) = steps[number - 1].mark() {
                let mut cuts: std::sync::MutexGuard<'_, BTreeMap<_, _>> = cuts.lock().unwrap();
                cuts.insert(mark.to_owned(), disk.cut(loss, number as u64));
            }
        },
    );
    cuts.into_inner().unwrap()
}

/// The content of a file after the cut at a mark; `None` if the file does not exist.
fn content<'a>(cuts: &'a BTreeMap<String, Files>, mark: &str, name: &str) -> Option<&'a [u8]> {
    cuts[mark].files.get(name).map(|content| &content[..])
}

#[test]
fn only_synced_changes_survive_a_power_cut() {
    let Some(disk) = Recorded::here() else {
        let test = "only_synced_changes_survive_a_power_cut";
        let worst = cuts(test, Loss::Everything, |disk| disk);
        assert_eq!(content(&worst, "written", "a"), None);
        assert_eq!(content(&worst, "synced", "a"), None, "the folder was not synced");
        assert_eq!(content(&worst, "named", "a"), Some(&b"first"[..]));
        assert_eq!(content(&worst, "changed", "a"), Some(&b"first"[..]));
        assert_eq!(content(&worst, "renamed", "a"), Some(&b"fiRST"[..]));
        assert_eq!(content(&worst, "renamed", "in/b"), None);
        assert_eq!(content(&worst, "done", "a"), None);
        assert_eq!(content(&worst, "done", "in/b"), Some(&b"fi"[..]));
        let best = cuts(test, Loss::Nothing, Disk::lying);
        assert_eq!(content(&best, "changed", "a"), Some(&b"fiRST"[..]));
        assert_eq!(content(&best, "renamed", "in/b"), Some(&b"fiRST"[..]));
        let lies = cuts(test, Loss::Everything, Disk::lying);
        assert!(lies.values().all(|files| files.files.is_empty() && files.folders.is_empty()));
        return;
    };
    let disk = disk.unwrap();
    let sync_folder = || File::open(&disk.folder).unwrap().sync_all().unwrap();
    let mut a = File::create(disk.folder.join("a")).unwrap();
    a.write_all(b"first").unwrap();
    disk.mark("written").unwrap();
    a.sync_data().unwrap();
    disk.mark("synced").unwrap();
    sync_folder();
    disk.mark("named").unwrap();
    a.write_all_at(b"RST", 2).unwrap();
    disk.mark("changed").unwrap();
    a.sync_all().unwrap();
    fs::create_dir(disk.folder.join("in")).unwrap();
    fs::rename(disk.folder.join("a"), disk.folder.join("in/b")).unwrap();
    disk.mark("renamed").unwrap();
    a.set_len(2).unwrap();
    a.sync_all().unwrap();
    File::open(disk.folder.join("in")).unwrap().sync_all().unwrap();
    sync_folder();
    disk.mark("done").unwrap();
}

#[test]
fn a_torn_write_ends_at_a_sector() {
    let Some(disk) = Recorded::here() else {
        let torn = cuts("a_torn_write_ends_at_a_sector", Loss::Tail, |disk| disk);
        let lengths: Vec<usize> = torn.values().map(|files| files.files["a"].len()).collect();
        assert!(lengths.iter().all(|bytes| bytes % 512 == 0 && *bytes < 5_000), "{lengths:?}");
        assert!(lengths.iter().any(|bytes| *bytes != lengths[0]), "{lengths:?}");
        return;
    };
    let disk = disk.unwrap();
    File::create(disk.folder.join("a")).unwrap().write_all(&[7; 5_000]).unwrap();
    (0..20).for_each(|number| disk.mark(&format!("cut {number}")).unwrap());
}

#[test]
fn a_failed_sync_is_reported_once_per_descriptor_and_not_retried() {
    let Some(disk) = Recorded::here() else {
        let test = "a_failed_sync_is_reported_once_per_descriptor_and_not_retried";
        let worst = cuts(test, Loss::Everything, |disk| disk);
        assert_eq!(content(&worst, "later", "a"), Some(&b""[..]), "only the program still reads the bytes");
        assert_eq!(content(&worst, "again", "a"), Some(&b"kept"[..]));
        return;
    };
    let disk = disk.unwrap();
    let path = disk.folder.join("a");
    let (a, other) = (File::create_new(&path).unwrap(), File::open(&path).unwrap());
    File::open(&disk.folder).unwrap().sync_all().unwrap();
    a.write_all_at(b"kept", 0).unwrap();
    disk.fail("sync EIO /a").unwrap();
    a.sync_all().unwrap_err();
    disk.fail("").unwrap();
    a.sync_all().unwrap();
    other.sync_all().unwrap_err();
    other.sync_all().unwrap();
    disk.mark("later").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"kept");
    a.write_all_at(b"kept", 0).unwrap();
    a.sync_all().unwrap();
    disk.mark("again").unwrap();
}

#[test]
fn a_read_fails_until_the_fault_ends() {
    let Some(disk) = Recorded::here() else {
        record("a_read_fails_until_the_fault_ends", &[]).unwrap();
        return;
    };
    let disk = disk.unwrap();
    let path = disk.folder.join("a");
    fs::write(&path, b"kept").unwrap();
    fs::write(disk.folder.join("b"), b"other").unwrap();
    let a = File::open(&path).unwrap();
    disk.fail("read EIO /a").unwrap();
    let mut bytes = [0; 4];
    assert_eq!(fs::read(&path).unwrap_err().raw_os_error(), Some(5));
    assert_eq!(a.read_exact_at(&mut bytes, 0).unwrap_err().raw_os_error(), Some(5));
    assert_eq!(fs::read(disk.folder.join("b")).unwrap(), b"other");
    disk.fail("").unwrap();
    a.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"kept");
}

#[test]
fn a_full_disk_takes_part_of_a_write_and_then_fails() {
    let Some(disk) = Recorded::here() else {
        record("a_full_disk_takes_part_of_a_write_and_then_fails", &[]).unwrap();
        return;
    };
    let disk = disk.unwrap();
    let mut a = File::create(disk.folder.join("a")).unwrap();
    disk.fail("write ENOSPC\ncreate EIO").unwrap();
    assert_eq!(a.write_all(&[1; 1_000]).unwrap_err().kind(), ErrorKind::StorageFull);
    let bytes = a.metadata().unwrap().len();
    assert!(0 < bytes && bytes < 1_000, "{bytes}");
    assert_eq!(File::create(disk.folder.join("b")).unwrap_err().raw_os_error(), Some(5));
    disk.fail("").unwrap();
    a.write_all(&[1; 1_000]).unwrap();
    assert_eq!(a.metadata().unwrap().len(), bytes + 1_000);
}
