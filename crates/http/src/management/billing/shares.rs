//! Worker time by owner or key, divided in proportion to the time that their jobs ran.

use longshore_engine::{Engine, JobUsage, UsageSheet};

use super::{Names, Sum};

/// The part of a sheet's worker time and amount that each owner or key gets. In a sheet without an ended job, all of it
/// belongs to no owner.
pub(super) fn shares(
    engine: &Engine,
    grouping: &str,
    sheet: &UsageSheet,
    workers: &Sum,
) -> Vec<(Names, Sum)> {
    let endpoint = ("endpointId", sheet.endpoint.to_string());
    let all_ms: u128 = sheet.jobs.iter().map(|jobs| u128::from(jobs.ms)).sum();
    let mut shares = Vec::new();
    let mut before_ms = 0;
    for jobs in &sheet.jobs {
        let mut sum = Sum { jobs: jobs.jobs, execution_ms: jobs.ms, ..Sum::default() };
        if all_ms > 0 {
            let until_ms = before_ms + u128::from(jobs.ms);
            // Neighbours are cut at the same place, so the parts add up to the whole.
            let cut = |whole: u64, at: u128| (u128::from(whole) * at / all_ms) as u64;
            let part = |whole| cut(whole, until_ms) - cut(whole, before_ms);
            (sum.ms, sum.gpu_ms) = (part(workers.ms), part(workers.gpu_ms));
            sum.amount = workers.amount * jobs.ms as f64 / all_ms as f64;
            before_ms = until_ms;
        }
        let mut names = names(engine, grouping, jobs);
        names.extend([endpoint.clone()]);
        shares.push((names, sum));
    }
    if all_ms == 0 && workers.ms > 0 {
        shares.push((
            Names::from([endpoint]),
            Sum { ms: workers.ms, gpu_ms: workers.gpu_ms, amount: workers.amount, ..Sum::default() },
        ));
    }
    shares
}

fn names(engine: &Engine, grouping: &str, jobs: &JobUsage) -> Names {
    let mut names = Names::new();
    names.extend(jobs.owner.map(|owner| ("owner", engine.keys().owner_name(owner).to_string())));
    if grouping == "key" {
        names.extend(jobs.key.map(|key| ("key", key.to_string())));
    }
    names
}
