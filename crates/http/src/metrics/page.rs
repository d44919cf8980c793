//! One rendering of the numbers, for everybody who asks within a second.
//!
//! With thousands of endpoints a page is many megabytes and costs a second of a processor. Whoever asks while one is
//! being made waits for that one. Keys that are limited to endpoints get the parts about theirs, cut out of the same
//! page.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use longshore_model::EndpointId;
use tokio::sync::watch;

/// How long a page is good for.
const FRESH: Duration = Duration::from_secs(1);

/// Of whom a part of a page tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// The head of a family whose samples are of endpoints.
    Endpoints,
    /// One endpoint, by its place in the page's list.
    Endpoint(usize),
    /// The whole process.
    Server,
}

/// The numbers as text, and where in it each endpoint's are.
#[derive(Debug, Default)]
pub(super) struct MetricsPage {
    text: Bytes,
    /// Where each part begins, in their order. A part ends where the next one begins.
    parts: Vec<(usize, About)>,
    /// The place of each endpoint.
    places: HashMap<EndpointId, usize>,
}

impl MetricsPage {
    pub(super) fn new(text: String, parts: Vec<(usize, About)>, endpoints: &[EndpointId]) -> Self {
        let places = endpoints.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        Self { text: text.into(), parts, places }
    }

    /// Everything.
    pub(super) fn whole(&self) -> Bytes {
        self.text.clone()
    }

    /// What is about these endpoints alone.
    pub(super) fn about<'a>(&self, endpoints: impl Iterator<Item = &'a EndpointId>) -> Bytes {
        let mut is_shown = vec![false; self.places.len()];
        for place in endpoints.filter_map(|id| self.places.get(id)) {
            is_shown[*place] = true;
        }
        let mut text = Vec::new();
        for (range, about) in self.ranges() {
            let shown = match about {
                About::Endpoints => true,
                About::Endpoint(place) => is_shown.get(place).copied().unwrap_or_default(),
                About::Server => false,
            };
            if shown {
                text.extend_from_slice(&self.text[range]);
            }
        }
        text.into()
    }

    fn ranges(&self) -> impl Iterator<Item = (Range<usize>, About)> {
        let ends = self.parts.iter().skip(1).map(|(start, _)| *start).chain([self.text.len()]);
        self.parts.iter().zip(ends).map(|((start, about), end)| (*start..end, *about))
    }
}

/// The page of this moment, as far as there is one.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    latest: Mutex<Option<watch::Receiver<Option<Arc<MetricsPage>>>>>,
}

impl PageCache {
    /// The page that is fresh, or is being made, or is made now by `render`. None where that did not end well.
    pub(super) async fn page<F>(self: &Arc<Self>, render: impl FnOnce() -> F) -> Option<Arc<MetricsPage>>
    where
        F: Future<Output = Option<MetricsPage>> + Send + 'static,
    {
        let mut latest = self.latest_or(|| {
            let (sender, latest) = watch::channel(None);
            tokio::spawn(Arc::clone(self).keep(sender, render()));
            latest
        });
        let page = latest.wait_for(Option::is_some).await.ok()?;
        page.clone()
    }

    /// A page is fresh, or on its way, as long as the task that made it keeps its end of the channel.
    fn latest_or(
        &self,
        begin: impl FnOnce() -> watch::Receiver<Option<Arc<MetricsPage>>>,
    ) -> watch::Receiver<Option<Arc<MetricsPage>>> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let present = latest.take().filter(|page| page.has_changed().is_ok());
        latest.insert(present.unwrap_or_else(begin)).clone()
    }

    /// Makes a page, and lets go of it after its time.
    async fn keep(
        self: Arc<Self>,
        sender: watch::Sender<Option<Arc<MetricsPage>>>,
        rendered: impl Future<Output = Option<MetricsPage>>,
    ) {
        let Some(page) = rendered.await else { return };
        sender.send_replace(Some(Arc::new(page)));
        tokio::time::sleep(FRESH).await;
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        drop(sender);
        // Unless another has begun meanwhile, which only happens after this.
        latest.take_if(|page| page.has_changed().is_err());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn page(text: &str) -> MetricsPage {
        MetricsPage::new(text.to_owned(), vec![(0, About::Server)], &[])
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_meanwhile_or_within_a_second_gets_the_same_page() {
        let cache = Arc::<PageCache>::default();
        let made = Arc::<AtomicUsize>::default();
        let ask = async || {
            let made = Arc::clone(&made);
            let render = || async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                Some(page(&made.fetch_add(1, Ordering::Relaxed).to_string()))
            };
            cache.page(render).await.unwrap().whole()
        };
        // The first one hangs up.
        tokio::time::timeout(Duration::from_secs(1), ask()).await.unwrap_err();
        let three = tokio::join!(ask(), ask(), ask());
        assert_eq!(three, ("0".into(), "0".into(), "0".into()));
        tokio::time::sleep(Duration::from_millis(999)).await;
        assert_eq!(ask().await, "0");
        tokio::time::sleep(FRESH).await;
        assert!(cache.latest.lock().unwrap().is_none(), "nobody needs it any more");
        assert_eq!(ask().await, "1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_could_not_be_made_is_tried_again() {
        let cache = Arc::<PageCache>::default();
        assert!(cache.page(|| async { None }).await.is_none());
        assert!(cache.page(|| async { panic!("no page") }).await.is_none());
        let next = cache.page(|| async { Some(page("next")) }).await;
        assert_eq!(next.unwrap().whole(), "next");
    }

    #[test]
    fn parts_are_cut_out() {
        let (one, other, third) = (EndpointId::mint(1), EndpointId::mint(2), EndpointId::mint(3));
        let parts = vec![
            (0, About::Endpoints),
            (1, About::Endpoint(0)),
            (2, About::Endpoint(1)),
            (4, About::Server),
            (5, About::Endpoints),
            (6, About::Endpoint(1)),
        ];
        let page = MetricsPage::new("h1223H22".to_owned(), parts, &[one, other]);
        assert_eq!(page.about([&one].into_iter()), "h1H");
        assert_eq!(page.about([&other, &third].into_iter()), "h22H22");
        assert_eq!(page.about([].into_iter()), "hH");
        assert_eq!(page.whole(), "h1223H22");
    }
}
