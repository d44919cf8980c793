//! The table at several widths.

use std::collections::BTreeMap;

use super::super::reasons::Reason;
use super::*;

fn row(name: &str, queued: u64) -> EndpointRow {
    EndpointRow { id: name.to_owned(), name: name.to_owned(), queued, ..EndpointRow::default() }
}

fn workers(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    counts.iter().map(|(condition, count)| ((*condition).to_owned(), *count)).collect()
}

fn reason(is_blocking: bool, title: &str, text: &str) -> Reason {
    Reason { code: "code".into(), is_blocking, title: title.into(), text: text.into() }
}

/// Three endpoints: one waits for GPUs, one crashes, one does nothing.
fn usual() -> Vec<EndpointRow> {
    vec![
        EndpointRow {
            running: 3,
            done_per_s: 2.5,
            delay_ms: Some(9_340),
            workers: workers(&[("running", 3)]),
            gpus: 12,
            reason: Some(reason(
                false,
                "All workers are busy",
                "All 3 workers are busy, and `workersMax` is 3.",
            )),
            trend: vec![0, 4, 20, 41],
            ..row("llama-8b", 41)
        },
        EndpointRow {
            workers: workers(&[("unhealthy", 1)]),
            reason: Some(reason(
                true,
                "Every worker crashes while it starts",
                "6 workers in a row ended with code 1.",
            )),
            trend: vec![0, 0, 1, 5],
            ..row("whisper-large-v3-turbo", 5)
        },
        EndpointRow { workers: workers(&[("idle", 1)]), trend: vec![0, 0, 0, 0], ..row("hello", 0) },
    ]
}

fn shown(rows: &[EndpointRow], width: usize) -> String {
    let lines = lines(rows, width, Styles::plain());
    for line in &lines {
        assert!(columns_of(line) <= width, "{width}: {line}");
    }
    lines.iter().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

#[test]
fn sixty_columns_have_the_reasons_below_the_endpoints() {
    expect_test::expect![[r"
        ENDPOINT       QUEUED  RUNNING  DONE/S  BUSY  GPUS  TREND
        llama-8b           41        3     2.5     3    12  ▁▂▅█
          All workers are busy: All 3 workers are busy, and `worker…
        whisper-larg…       5        0     0.0     0     0  ▁▁▃█
          Every worker crashes while it starts: 6 workers in a row…
        hello               0        0     0.0     0     0  ▁▁▁▁
    "]]
    .assert_eq(&shown(&usual(), 60));
}

#[test]
fn a_hundred_and_twenty_columns_have_the_reasons_beside_them() {
    expect_test::expect![[r"
        ENDPOINT           QUEUED  RUNNING  DONE/S  DELAY  BUSY  IDLE  ILL  GPUS  TREND     WHY JOBS WAIT
        llama-8b               41        3     2.5  9.3 s     3     0    0    12  ▁▂▅█      All workers are busy: All 3 workers…
        whisper-large-v3…       5        0     0.0      -     0     0    1     0  ▁▁▃█      Every worker crashes while it start…
        hello                   0        0     0.0      -     0     1    0     0  ▁▁▁▁
    "]]
    .assert_eq(&shown(&usual(), 120));
}

#[test]
fn a_wide_terminal_has_all_columns_and_whole_reasons() {
    expect_test::expect![[r"
        ENDPOINT                QUEUED  RUNNING  DONE/S  FAIL/S  DELAY  BUSY  IDLE  START  ILL  GPUS  TREND     WHY JOBS WAIT
        llama-8b                    41        3     2.5     0.0  9.3 s     3     0      0    0    12  ▁▂▅█      All workers are busy: All 3 workers are busy, and `workersMax` is 3.
        whisper-large-v3-turbo       5        0     0.0     0.0      -     0     0      0    1     0  ▁▁▃█      Every worker crashes while it starts: 6 workers in a row ended with code 1.
        hello                        0        0     0.0     0.0      -     0     1      0    0     0  ▁▁▁▁
    "]].assert_eq(&shown(&usual(), 200));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut rows = usual();
    rows.push(EndpointRow {
        reason: Some(reason(true, "日本語のタイトル", "\u{1b}[31m🚀")),
        ..row("日本語日本語日本語日本語", u64::MAX)
    });
    for width in 1..=240 {
        // The counts of queued jobs are never cut: a terminal that is narrower shows nothing of use.
        if width >= 44 {
            shown(&rows, width);
        }
        assert!(!lines(&rows, width, Styles::plain()).is_empty());
    }
}

#[test]
fn colours_say_what_is_bad() {
    let lines = lines(&usual(), 120, Styles::coloured());
    let has = |line: usize, text: &str| assert!(lines[line].contains(text), "{}", lines[line]);
    has(1, "\x1b[33m    41\x1b[0m");
    has(1, "\x1b[33mAll workers are busy");
    has(2, "\x1b[31mEvery worker crashes");
    assert!(!lines[3].contains('\x1b'), "nothing waits or fails: {}", lines[3]);
}
