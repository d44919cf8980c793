//! What an hour of a worker costs.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What an hour of a worker costs, as the operator says: of one GPU by its type, of a worker without GPUs as `cpu`.
/// What is not listed costs nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(Arc<BTreeMap<String, f64>>);

/// The name of workers without GPUs.
const CPU: &str = "cpu";

impl Prices {
    /// The price of one worker's hour.
    pub(crate) fn per_hour(&self, gpu_type: Option<&str>, gpus: usize) -> f64 {
        let price = self.0.get(gpu_type.unwrap_or(CPU)).copied().unwrap_or(0.0);
        price * gpus.max(1) as f64
    }
}

impl From<BTreeMap<String, f64>> for Prices {
    fn from(prices: BTreeMap<String, f64>) -> Self {
        Self(Arc::new(prices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_costs_nothing() {
        let listed = [("NVIDIA L4", 0.5), ("cpu", 0.1)].map(|(name, price)| (name.to_owned(), price));
        let prices = Prices::from(BTreeMap::from(listed));
        for (gpu_type, gpus, price) in [
            (Some("NVIDIA L4"), 1, 0.5),
            (Some("NVIDIA L4"), 4, 2.0),
            (None, 0, 0.1),
            (Some("NVIDIA H200"), 1, 0.0),
        ] {
            assert!((prices.per_hour(gpu_type, gpus) - price).abs() < 1e-12, "{gpu_type:?}");
        }
    }
}
