//! A page of metrics, rendered at most once per second.
//!
//! With thousands of endpoints a page has many megabytes and takes a second of processor time. Requests during a rendering
//! wait for its page. Keys that are limited to endpoints get the parts of the same page about these endpoints.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use longshore_model::EndpointId;
use tokio::sync::watch;

use super::format::Format;

/// How long a rendered page is returned before a new one is rendered.
const FRESH: Duration = Duration::from_secs(1);

/// The subject of a part of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// The head of a family whose samples are of endpoints.
    Endpoints,
    /// The samples of one endpoint, by its place in the list of endpoints.
    Endpoint(usize),
    /// The metrics of the process.
    Server,
}

/// A rendered page, with the ranges of each endpoint's samples.
#[derive(Debug, Default)]
pub(super) struct MetricsPage {
    text: Bytes,
    /// The offset of each part, in order. A part ends where the next one begins.
    parts: Vec<(usize, About)>,
    /// The place of each endpoint in the list of endpoints.
    places: HashMap<EndpointId, usize>,
}

impl MetricsPage {
    pub(super) fn new(text: impl Into<Bytes>, parts: Vec<(usize, About)>, endpoints: &[EndpointId]) -> Self {
        let places = endpoints.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        Self { text: text.into(), parts, places }
    }

    /// The metrics of all families in one text, for a request without a filter.
    pub(super) fn whole(&self) -> Bytes {
        self.text.clone()
    }

    /// The parts about these endpoints, with the heads of their families.
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

/// The newest page of each format.
#[derive(Debug, Default)]
pub(crate) struct PageCaches {
    text: Arc<PageCache>,
    open_metrics: Arc<PageCache>,
    protobuf: Arc<PageCache>,
}

impl PageCaches {
    /// The pages of this format.
    pub(super) fn of(&self, format: Format) -> &Arc<PageCache> {
        match format {
            Format::Text => &self.text,
            Format::OpenMetrics => &self.open_metrics,
            Format::Protobuf => &self.protobuf,
        }
    }
}

/// The newest page, or the one that is being rendered.
#[derive(Debug, Default)]
pub(super) struct PageCache {
    latest: Mutex<Option<watch::Receiver<Option<Arc<MetricsPage>>>>>,
}

impl PageCache {
    /// Returns the newest page if it is fresh, else waits for the page that is being rendered or starts `render`. `None` if
    /// rendering failed.
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

    /// Returns the newest page or starts one with `begin`. A page is fresh or being rendered as long as its task holds the
    /// sender of the channel.
    fn latest_or(
        &self,
        begin: impl FnOnce() -> watch::Receiver<Option<Arc<MetricsPage>>>,
    ) -> watch::Receiver<Option<Arc<MetricsPage>>> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let present = latest.take().filter(|page| page.has_changed().is_ok());
        latest.insert(present.unwrap_or_else(begin)).clone()
    }

    /// Renders a page and drops it when it is no longer fresh.
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
        // A page that was begun meanwhile stays.
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
    async fn requests_during_a_rendering_or_within_a_second_get_the_same_page() {
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
        // The first client disconnects.
        tokio::time::timeout(Duration::from_secs(1), ask()).await.unwrap_err();
        let three = tokio::join!(ask(), ask(), ask());
        assert_eq!(three, ("0".into(), "0".into(), "0".into()));
        tokio::time::sleep(Duration::from_millis(999)).await;
        assert_eq!(ask().await, "0");
        tokio::time::sleep(FRESH).await;
        assert!(cache.latest.lock().unwrap().is_none(), "the stale page must be dropped");
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
