//! `/v1/docs`: the API's document as an HTML page. The page needs no key, no script and no other host.

mod curl;
mod html;
mod page;
mod schema_html;

use std::sync::OnceLock;

use axum::response::Response;
use bytes::Bytes;

use super::document;
use crate::openapi::Operation;
use crate::wire::guarded_page::guarded;

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
    let page = PAGE
        .get_or_init(|| Bytes::from(page::page(&crate::management::documented_groups(), document::made())));
    guarded("text/html; charset=utf-8", page.clone())
}

async fn style() -> Response {
    guarded("text/css; charset=utf-8", Bytes::from_static(include_bytes!("docs/style.css")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> String {
        page::page(&crate::management::documented_groups(), document::made())
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
    fn every_element_is_closed_and_nothing_comes_from_other_hosts() {
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
