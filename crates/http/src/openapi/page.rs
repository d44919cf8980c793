//! Lists in pages: `?limit=` and `?cursor=`, and the `Link` header with the address of the next page.
//!
//! A cursor has the creation time and the id of the last item. The next page begins after them, even if that item was
//! deleted. Every item that exists during the whole listing is returned exactly once.

use axum::response::{IntoResponse, Response};
use http::header::LINK;
use http::{HeaderValue, Uri};
use longshore_model::Millis;
use longshore_model::limits::LIST_LIMIT_MAX;
use serde::Serialize;

use crate::wire::api_error::ApiError;
use crate::wire::query::Query;

/// The part of a list that a request asks for.
#[derive(Debug)]
pub(crate) struct Page {
    limit: usize,
    after: Option<(Millis, String)>,
    path: String,
    /// The other parameters of the query, which the address of the next page keeps.
    others: String,
}

impl Page {
    /// Reads `limit` and `cursor` from a query.
    pub(crate) fn of(uri: &Uri, query: &Query) -> Result<Self, ApiError> {
        let limit = query.integer("limit", 1, LIST_LIMIT_MAX as u64)?;
        let after = query.get("cursor").map(parse).transpose()?;
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let others = pairs.filter(|(name, _)| !matches!(name.as_ref(), "limit" | "cursor"));
        let others = form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish();
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        Ok(Self { limit, after, path: uri.path().to_owned(), others })
    }

    /// The items of this page, oldest first, and the cursor of the next page.
    pub(crate) fn cut<T>(
        &self,
        items: Vec<T>,
        key: impl Fn(&T) -> (Millis, String),
    ) -> (Vec<T>, Option<String>) {
        let mut keyed: Vec<_> = items.into_iter().map(|item| (key(&item), item)).collect();
        keyed.retain(|(key, _)| self.after.as_ref().is_none_or(|after| key > after));
        keyed.sort_by(|one, other| one.0.cmp(&other.0));
        let more = keyed.len() > self.limit;
        keyed.truncate(self.limit);
        let last = keyed.last().filter(|_| more);
        let cursor = last.map(|((at, id), _)| format!("{}.{id}", at.0));
        (keyed.into_iter().map(|(_, item)| item).collect(), cursor)
    }

    /// The response with the items of a page, and with a `Link` header if there is a next page.
    pub(crate) fn answer(&self, items: Vec<impl Serialize>, cursor: Option<String>) -> Response {
        let mut response = axum::Json(items).into_response();
        let link = cursor.and_then(|cursor| {
            let Self { limit, path, others, .. } = self;
            let cursor: String = form_urlencoded::byte_serialize(cursor.as_bytes()).collect();
            let others = if others.is_empty() { String::new() } else { format!("&{others}") };
            HeaderValue::try_from(format!("<{path}?limit={limit}&cursor={cursor}{others}>; rel=\"next\""))
                .ok()
        });
        if let Some(link) = link {
            response.headers_mut().insert(LINK, link);
        }
        response
    }
}

fn parse(text: &str) -> Result<(Millis, String), ApiError> {
    let cursor = text.split_once('.').and_then(|(at, id)| Some((Millis(at.parse().ok()?), id.to_owned())));
    cursor.ok_or_else(|| {
        ApiError::bad_request(
            "bad_parameter",
            "`cursor` is not one that this server gave; take it from the `Link` header of the page before",
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn page(uri: &str) -> Page {
        let uri: Uri = uri.parse().unwrap();
        Page::of(&uri, &Query::of(&uri).unwrap()).unwrap()
    }

    type Item = (u64, &'static str);

    fn cut(uri: &str, items: &[Item]) -> (Vec<Item>, Option<String>) {
        page(uri).cut(items.to_vec(), |(at, id)| (Millis(*at), (*id).to_owned()))
    }

    #[test]
    fn pages_cover_everything_once_also_when_their_ends_are_deleted() {
        let mut items = vec![(1, "b"), (1, "a"), (2, "d"), (1, "c"), (3, "e")];
        let (first, cursor) = cut("/x?limit=2", &items);
        assert_eq!((first, cursor.as_deref()), (vec![(1, "a"), (1, "b")], Some("1.b")));
        items.retain(|item| item.1 != "b");
        let (second, cursor) = cut("/x?limit=2&cursor=1.b", &items);
        assert_eq!((second, cursor.as_deref()), (vec![(1, "c"), (2, "d")], Some("2.d")));
        let (third, cursor) = cut("/x?limit=2&cursor=2.d", &items);
        assert_eq!((third, cursor), (vec![(3, "e")], None));
        assert_eq!(cut("/x", &items), (vec![(1, "a"), (1, "c"), (2, "d"), (3, "e")], None));
    }

    #[test]
    fn the_next_page_keeps_the_other_parameters() {
        let response =
            page("/v1/x?a=%26b&limit=2&cursor=1.b").answer(Vec::<Value>::new(), Some("2.d".to_owned()));
        assert_eq!(response.headers()[LINK], "</v1/x?limit=2&cursor=2.d&a=%26b>; rel=\"next\"");
        assert!(page("/v1/x").answer(Vec::<Value>::new(), None).headers().get(LINK).is_none());
    }

    #[test]
    fn what_is_no_limit_or_cursor_is_refused() {
        for text in ["limit=0", "limit=1001", "limit=x", "cursor=", "cursor=x", "cursor=x.y", "cursor=-1.a"] {
            let uri: Uri = format!("/x?{text}").parse().unwrap();
            assert_eq!(
                Page::of(&uri, &Query::of(&uri).unwrap()).unwrap_err().code(),
                "bad_parameter",
                "{text}"
            );
        }
    }
}
