// Says that the counts of some endpoints could not be read, above a table that has none of them.
import { html } from "../dom.js";
import { count } from "../format.js";
import { healthPath } from "../fleet.js";
import { refresh } from "../store.js";
import { Failed } from "./card.js";

/** @param {{unread: import("../fleet.js").Row[]}} props */
export default function UnreadCounts({ unread }) {
  const [{ endpoint, error }] = unread;
  const whose = unread.length === 1 ? endpoint.name : `${count(unread.length)} endpoints`;
  const retry = () => ["/v1/endpoints?", "/v1/me?", ...unread.map(({ endpoint: { id } }) => healthPath(id))].forEach(refresh);
  return html`<${Failed} what=${`The states and counts of ${whose}`} error=${error} onRetry=${retry} />`;
}
