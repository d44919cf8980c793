//! `/v1/docs`: the API's document as an HTML page. The page needs no key, no script and no other host.

mod curl;
mod html;
mod page;
mod schema_html;

use std::sync::OnceLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::HeaderValue;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

use super::document;
use crate::openapi::Operation;

/// The content security policy: the page may load its own stylesheet only, and may not be framed.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-cache"),
];

/// The operations that show the page.
pub(super) fn operations() -> [Operation; 2] {
    [
        Operation::get("GetDocs", "/v1/docs", page)
            .summary("this document as an HTML page")
            .gives_text("text/html")
            .open(),
        Operation::get("GetDocsStyle", "/v1/docs/style.css", style)
            .summary("the page's stylesheet")
            .gives_text("text/css")
            .open(),
    ]
}

async fn page() -> Response {
    static PAGE: OnceLock<Bytes> = OnceLock::new();
    let page =
        PAGE.get_or_init(|| Bytes::from(page::page(&crate::management::all_groups(), document::made())));
    guarded("text/html; charset=utf-8", page.clone())
}

async fn style() -> Response {
    guarded("text/css; charset=utf-8", Bytes::from_static(include_bytes!("docs/style.css")))
}

/// Returns a response with headers that keep the page from loading or running anything of other origins.
pub(crate) fn guarded(content_type: &'static str, text: Bytes) -> Response {
    let mut response = ([(CONTENT_TYPE, content_type)], text).into_response();
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> String {
        page::page(&crate::management::all_groups(), document::made())
    }

    #[test]
    fn the_page_shows_every_operation_and_every_schema() {
        let (page, document) = (made(), document::made());
        for (path, methods) in document["paths"].as_object().unwrap() {
            for described in methods.as_object().unwrap().values() {
                let id = described["operationId"].as_str().unwrap();
                assert!(page.contains(&format!("id=\"{id}\"")), "{path}: {id}");
            }
        }
        for name in document["components"]["schemas"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("id=\"schema-{name}\"")), "{name}");
        }
        assert_eq!(page.matches("curl ").count(), page.matches("class=\"operation\"").count());
    }

    #[test]
    fn every_link_within_the_page_leads_somewhere() {
        let page = made();
        for rest in page.split("href=\"#").skip(1) {
            let anchor = rest.split('"').next().unwrap();
            assert!(page.contains(&format!("id=\"{anchor}\"")), "{anchor}");
        }
    }

    #[test]
    fn every_element_is_closed_and_nothing_comes_from_elsewhere() {
        let page = made();
        for element in
            ["details", "summary", "table", "tr", "td", "ul", "li", "section", "pre", "code", "p", "nav"]
        {
            let opened =
                page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
            assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
        }
        for foreign in ["<script", "src=", "href=\"http", " style="] {
            assert!(!page.contains(foreign), "{foreign}");
        }
    }
}
