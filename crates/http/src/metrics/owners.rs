//! Usage by the owners of keys: the busiest owners by name, all others together. This bounds the length of the page.

use longshore_engine::{Engine, Use};

use super::exposition::{Exposition, MetricType};

const MS_PER_SECOND: f64 = 1_000.0;

/// The label of all owners that are not among the busiest.
const OTHER: &str = "other";

/// Renders the counters of owners.
pub(super) fn owners(page: &mut Exposition, engine: &Engine) {
    let uses: Vec<_> = engine
        .keys()
        .owner_use()
        .into_iter()
        .map(|(no, used)| (no.map_or_else(|| OTHER.into(), |no| label(&engine.keys().owner_name(no))), used))
        .collect();
    let mut family = |name: &str, help: &str, number: fn(&Use) -> f64| {
        page.family(name, MetricType::Counter, help);
        for (owner, used) in &uses {
            page.sample(name, &[("owner", owner)], number(used));
        }
    };
    let name = "longshore_owner_submitted_total";
    family(name, "jobs that an owner's keys submitted", |used| used.submitted as f64);
    family("longshore_owner_ended_total", "jobs of an owner that ended", |used| used.ended as f64);
    let name = "longshore_owner_served_seconds_total";
    family(name, "time that an owner's ended jobs ran", |used| used.served_ms as f64 / MS_PER_SECOND);
}

/// The label of an owner, distinct from [`OTHER`].
fn label(name: &str) -> String {
    if name == OTHER { format!("{name} (an owner)") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_called_other_is_told_from_the_others() {
        assert_eq!((label("acme").as_str(), label("other").as_str()), ("acme", "other (an owner)"));
    }
}
