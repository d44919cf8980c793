//! How often the faults of clusters occur in a world.

use crate::faults::Fault;
use crate::rng::Rng;

/// The largest rates per opportunity.
const RATES_MAX: &[(Fault, f64)] = &[
    (Fault::ServerKilled, 0.000_2),
    (Fault::ServerRestarted, 0.2),
    (Fault::NodePaused, 0.3),
    (Fault::NodesApart, 0.3),
    (Fault::DatabaseApart, 0.3),
    (Fault::DatabaseKilled, 0.5),
    (Fault::DatabaseTailLost, 0.9),
    (Fault::DatabaseReadOnly, 0.5),
    (Fault::DatabaseCut, 0.01),
    (Fault::DatabaseSessionEnded, 0.002),
    (Fault::DatabaseSlow, 0.02),
];
/// Faults of a disk, which objects do not have.
const NEVER: &[Fault] = &[
    Fault::ReadFailed,
    Fault::DiskFull,
    Fault::DiskUnreadable,
    Fault::BlobFailed,
    Fault::CommitSlow,
    // The database has the only clock that counts, and it does not jump.
    Fault::ClockForward,
    Fault::ClockBack,
    Fault::InputDamaged,
    Fault::OutputDamaged,
    Fault::ChunkDamaged,
];

/// Draws the rates of one world: each kind occurs in half of the worlds.
pub fn rates(rng: &mut Rng) -> Vec<(Fault, f64)> {
    let drawn = RATES_MAX.iter().map(|(fault, rate_max)| {
        // Between a tenth of the largest rate and the largest.
        let strength = 10_f64.powf(-(rng.range(0..=1_000) as f64) / 1_000.0);
        (*fault, if rng.chance(0.5) { rate_max * strength } else { 0.0 })
    });
    let never = NEVER.iter().map(|fault| (*fault, 0.0));
    let mut rates: Vec<_> = drawn.chain(never).collect();
    // Drawn from a copy, so that worlds without these later kinds repeat unchanged.
    let mut late = rng.clone();
    if late.chance(0.3) {
        rates.push((Fault::DatabaseSessionKilled, late.skewed(10..=500) as f64 / 1_000.0));
    }
    if late.chance(0.3) {
        rates.push((Fault::PeerAnswerLost, late.skewed(1..=50) as f64 / 1_000.0));
    }
    rates
}
