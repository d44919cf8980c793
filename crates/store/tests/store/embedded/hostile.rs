//! Rows of any content, and files of which any byte has changed: what is read is what was written, or an error.

use std::fs;
use std::ops::Range;
use std::sync::OnceLock;

use longshore_disk_faults::Files;
use longshore_hostile::{cases, job_row, mutated, text};
use longshore_model::{Counters, EndpointNo, Millis};
use longshore_store::{
    BlobRef, EmbeddedStore, OutcomeRow, Payload, SegmentLimits, Store, StoreError, StreamRow, Write,
};
use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::foreign_bytes::{filled, live_in, live_with};
use super::fresh;
use super::segment::Segment;
use crate::rows::{chunk, claim, commit, full_job, job, key, put};

/// What the log takes for something, or a part of it.
const TOKENS: &[&[u8]] = &[
    b"\0\0\0\0",
    b"\xff\xff\xff\xff",
    b"\x80\x80\x80\x80\x01",
    b"LSHRLOG\n",
    b"\x01\x02\x03\x07\x0d\x0e\x0f\x11",
];

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn any_payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        longshore_hostile::bytes().prop_map(|bytes| Payload::Inline(bytes.into())),
        (text(), any::<u64>()).prop_map(|(name, bytes)| Payload::Blob(BlobRef { name: name.into(), bytes })),
    ]
}

/// A sealed segment with some life in it, and the one behind it with further commits.
struct Segments {
    sealed: Vec<u8>,
    newest: Vec<u8>,
    commits: u64,
}

/// The same ones every time: to make them takes longer than to open them.
fn segments() -> &'static Segments {
    static SEGMENTS: OnceLock<Segments> = OnceLock::new();
    SEGMENTS.get_or_init(|| runtime().block_on(made()))
}

async fn made() -> Segments {
    let (store, dir) = fresh();
    let epoch = claim(&store).await;
    commit(&store, epoch, (2..=120).map(|seq| put(full_job(1, seq))).collect()).await.unwrap();
    let large = Payload::Inline(vec![1; 5_000].into());
    commit(&store, epoch, vec![Write::PutInput(key(1, 1), large)]).await.unwrap();
    drop(store);
    let limits = SegmentLimits { short_bytes: 0, ..SegmentLimits::default() };
    let store = EmbeddedStore::open_with(dir.path(), limits).unwrap();
    let epoch = claim(&store).await;
    let commits = 12;
    for seq in 1..=commits {
        let input = Payload::Inline(vec![seq as u8; 300 * seq as usize].into());
        commit(&store, epoch, vec![put(job(2, seq)), Write::PutInput(key(2, seq), input)]).await.unwrap();
    }
    let read = |name: &str| {
        let segment = Segment::new(fs::read(dir.path().join(name)).unwrap());
        segment.bytes[..segment.end() + 100].to_vec()
    };
    Segments { sealed: read("log/0000000001.log"), newest: read("log/0000000002.log"), commits }
}

/// Opens a directory with such segments, reads everything and writes more. Errors are allowed unless a defect of the store
/// causes them.
async fn live_with_both(sealed: &[u8], newest: &[u8]) {
    let dir = Files::default().rebuild().unwrap();
    fs::create_dir(dir.path().join("log")).unwrap();
    fs::write(dir.path().join("log/0000000001.log"), sealed).unwrap();
    fs::write(dir.path().join("log/0000000002.log"), newest).unwrap();
    live_in(dir.path()).await;
}

/// A segment with one of everything, and where the records of its last frame are.
fn filled_segment() -> &'static (Segment, Range<usize>) {
    static FILLED: OnceLock<(Segment, Range<usize>)> = OnceLock::new();
    FILLED.get_or_init(|| {
        let segment = runtime().block_on(filled());
        let records = segment.records().pop().unwrap();
        (segment, records)
    })
}

fn filled_records() -> &'static [u8] {
    let (segment, records) = filled_segment();
    &segment.bytes[records.clone()]
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn any_row_is_read_as_it_was_written(
        row in job_row(),
        input in any_payload(),
        output in prop::option::of(any_payload()),
        error in prop::option::of(text()),
        chunks in prop::collection::vec(longshore_hostile::bytes(), 0..4),
        counts: [u64; 6],
        setting in (text(), longshore_hostile::bytes()),
    ) {
        runtime().block_on(async {
            let (store, _dir) = fresh();
            let epoch = claim(&store).await;
            let one = row.key;
            let outcome = OutcomeRow { output, error: error.map(Into::into) };
            let stream = StreamRow { next: counts[0] >> 1, consumed: counts[1] >> 1, ..StreamRow::default() };
            let counters = Counters {
                completed: counts[0],
                failed: counts[1],
                retried: counts[2],
                cancelled: counts[3],
                reserved_seq: counts[4],
                purged_until: Millis(counts[5]),
            };
            let mut writes = vec![
                put(row.clone()),
                Write::PutInput(one, input.clone()),
                Write::PutOutcome(one, outcome.clone()),
                Write::PutStream(one, stream),
                Write::PutCounters(EndpointNo(1), counters),
                Write::PutSetting(setting.0.clone(), setting.1.clone().into()),
            ];
            writes.extend(chunks.iter().enumerate().map(|(no, bytes)| chunk(one, no as u64, bytes.clone())));
            commit(&store, epoch, writes).await.unwrap();
            prop_assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), [row]);
            prop_assert_eq!(store.input(one).await.unwrap(), Some(input));
            prop_assert_eq!(store.outcome(one).await.unwrap(), Some(outcome));
            prop_assert_eq!(store.stream(one).await.unwrap(), Some(stream));
            prop_assert_eq!(store.counters(EndpointNo(1)).await.unwrap(), counters);
            prop_assert_eq!(store.catalog().await.unwrap().settings.get(&setting.0).map(|value| value.to_vec()), Some(setting.1));
            let kept = store.chunks(one, 0, usize::MAX).await.unwrap();
            prop_assert_eq!(kept.iter().map(|chunk| chunk.bytes.to_vec()).collect::<Vec<_>>(), chunks);
            Ok(())
        })?;
    }

    #[test]
    fn records_of_any_bytes_are_read_or_an_error_with_an_address(
        records in mutated(Just(filled_records()), TOKENS),
    ) {
        let (segment, old) = filled_segment();
        let mut segment = segment.clone();
        segment.bytes.truncate(old.start);
        segment.bytes[old.start - 16..old.start - 12].copy_from_slice(&(records.len() as u32).to_le_bytes());
        segment.bytes.extend_from_slice(&records);
        segment.seal(&(old.start..old.start + records.len()));
        runtime().block_on(live_with(&segment.bytes));
    }

    #[test]
    fn a_newest_segment_of_which_any_bytes_changed_is_refused_or_loses_what_looks_torn(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4),
    ) {
        let Segments { sealed, newest, commits } = segments();
        runtime().block_on(async {
            let mut newest = newest.clone();
            for (at, change) in &changes {
                // The header is no frame: a segment without one is refused.
                let at = 4_096 + at.index(newest.len() - 4_096);
                newest[at] ^= change;
            }
            let dir = Files::default().rebuild().unwrap();
            fs::create_dir(dir.path().join("log")).unwrap();
            fs::write(dir.path().join("log/0000000001.log"), sealed).unwrap();
            fs::write(dir.path().join("log/0000000002.log"), &newest).unwrap();
            let store = match EmbeddedStore::open(dir.path()) {
                Ok(store) => store,
                Err(error) => {
                    assert!(error.to_string().contains("`log/0000000002.log`, byte "), "{error:?}");
                    return;
                }
            };
            let jobs = store.jobs(EndpointNo(2), 0, 1_000).await.unwrap();
            let expected: Vec<_> = (1..=jobs.len() as u64).map(|seq| job(2, seq)).collect();
            assert_eq!(jobs, expected, "not a prefix of what was committed");
            // Nothing says of the last commit that it was ever durable; with that gone, of the one before.
            assert!(jobs.len() + changes.len() >= *commits as usize, "{} jobs", jobs.len());
            for row in &jobs {
                // A payload that was durable long ago is told from one that a crash tore.
                let input = store.input(row.key).await;
                assert!(matches!(input, Ok(Some(_)) | Err(StoreError::Corrupt(_))), "{input:?}");
            }
            assert_eq!(store.jobs(EndpointNo(1), 0, 1_000).await.unwrap().len(), 119);
        });
    }

    #[test]
    fn a_sealed_segment_of_which_a_byte_changed_is_noticed(
        at in any::<prop::sample::Index>(), change in 1..=255_u8,
    ) {
        let Segments { sealed, newest, .. } = segments();
        runtime().block_on(async {
            let mut changed = sealed.clone();
            let end = Segment::new(changed.clone()).end();
            let at = at.index(end);
            changed[at] ^= change;
            let dir = Files::default().rebuild().unwrap();
            fs::create_dir(dir.path().join("log")).unwrap();
            fs::write(dir.path().join("log/0000000001.log"), &changed).unwrap();
            fs::write(dir.path().join("log/0000000002.log"), newest).unwrap();
            let meaningless = (12..16).contains(&at) || (64..4_096).contains(&at);
            match EmbeddedStore::open(dir.path()) {
                Ok(store) => {
                    let input = store.input(key(1, 1)).await;
                    assert!(meaningless || matches!(input, Err(StoreError::Corrupt(_))), "byte {at}: {input:?}");
                }
                Err(StoreError::Unusable(text)) => {
                    assert!(text.contains("0000000001.log") || text.contains("newer version"), "{text}");
                }
                Err(other) => panic!("{other:?}"),
            }
        });
    }

    #[test]
    fn files_of_which_any_bytes_changed_are_survived(
        changes in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), any::<u8>()), 1..40),
        headers in prop::collection::vec((any::<bool>(), 0..64_usize, any::<u8>()), 0..3),
    ) {
        let (mut sealed, mut newest) = (segments().sealed.clone(), segments().newest.clone());
        for (which, at, byte) in changes {
            let segment = if which { &mut sealed } else { &mut newest };
            let at = at.index(segment.len());
            segment[at] = byte;
        }
        for (which, at, byte) in headers {
            let segment = if which { &mut sealed } else { &mut newest };
            segment[at] = byte;
        }
        runtime().block_on(live_with_both(&sealed, &newest));
    }

    #[test]
    fn spoiled_files_are_survived(
        sealed in mutated(Just(&segments().sealed[..]), TOKENS),
        newest in longshore_hostile::bytes(),
    ) {
        runtime().block_on(live_with_both(&sealed, &newest));
        runtime().block_on(live_with(&sealed));
    }
}
