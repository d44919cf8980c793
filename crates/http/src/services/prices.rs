//! The prices of workers.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Prices per hour, set by the operator: of one GPU by type, and of a worker without GPUs as `cpu`. The price of an
/// unlisted type is 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(Arc<BTreeMap<String, f64>>);

/// The name under which the price of workers without GPUs is listed.
const CPU: &str = "cpu";

impl Prices {
    /// Whether nothing has a price.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The price of one worker for one hour.
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
