//! How to call a load-balancing endpoint.

use longshore_client::segment;

use crate::screen::Screen;

/// The address of a load-balancing endpoint.
pub(crate) fn address(base_url: &str, slug: &str) -> String {
    format!("{}/lb/{}/", base_url.trim_end_matches('/'), segment(slug))
}

/// Prints the address of the endpoint, and a request to it.
pub(crate) fn show(base_url: &str, slug: &str, key: &str, screen: &Screen) {
    let address = address(base_url, slug);
    let socket = address.replacen("http", "ws", 1);
    let blocks = [
        ("address, for every path and method", address.clone()),
        ("curl", format!("curl {address} \\\n  -H 'Authorization: Bearer {key}'")),
        (
            "WebSocket of a page",
            format!("new WebSocket(\"{socket}ws\", [\"longshore\", \"longshore.key.{key}\"])"),
        ),
        ("longshore, in a second terminal", format!("longshore logs -f {slug}\nlongshore top")),
    ];
    for (title, lines) in blocks {
        screen.line("");
        screen.line(&format!("  {}", screen.bold(title)));
        for line in lines.lines() {
            screen.line(&format!("    {line}"));
        }
    }
    screen.line("");
}
