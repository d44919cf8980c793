//! The dump of a log.

use longshore_store::{Store as _, Write};

use super::fresh;
use crate::rows::{claim, commit, full_job, inline, key, put, template};

#[tokio::test]
async fn a_dump_has_a_line_for_every_record_and_no_secrets() {
    let (store, dir) = fresh();
    let epoch = claim(&store).await;
    let writes = vec![
        put(full_job(1, 1)),
        Write::PutInput(key(1, 1), inline("a secret input")),
        Write::PutTemplate(Box::new(template(1))),
        Write::DeleteJob(key(1, 1)),
    ];
    commit(&store, epoch, writes).await.unwrap();
    let mut out = Vec::new();
    longshore_store::dump(dir.path(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert_eq!((&lines[0]["is"]["shard"], &lines[0]["is"]["epoch"]), (&7.into(), &1.into()));
    assert_eq!(
        (&lines[1]["is"]["state"], &lines[1]["is"]["worker"]),
        (&"TIMED_OUT".into(), &"wk-1.a:b_C".into())
    );
    assert_eq!(lines[2]["is"]["payload"]["bytes"], 14);
    assert_eq!(lines[4]["is"]["count"], 1);
    assert!(!text.contains("secret") && !text.contains("env"), "{text}");
    assert!(store.jobs(key(1, 1).endpoint, 0, 1).await.unwrap().is_empty());
}
