// An address without a page.
import { html } from "../dom.js";
import { href, place } from "../router.js";
import { Empty } from "../ui/card.js";

export default function NotFound() {
  return html`<h1>No page has this address</h1><${Empty}><p>There is nothing at <code>${place.value.path}</code>. It may be of another version of the console.</p><a class="button" href=${href("/")}>Go to the overview</a><//>`;
}
