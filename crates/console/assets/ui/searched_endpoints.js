// The endpoints of a server that has more than a few: searched, and only the rows in the window are in the document.
import { html } from "../dom.js";
import { EndpointTable } from "./endpoint_table.js";
import { useListSearch } from "./list_search.js";
import { TableWindow } from "./table_window.js";

/** @param {{rows: import("../fleet.js").Row[], card: (note: string | undefined, content: any) => any}} props */
export default function SearchedEndpoints({ rows, card }) {
  const { shown, note, field, none } = useListSearch(rows, "endpoints", "Name, slug or id", ({ endpoint }) => `${endpoint.name} ${endpoint.slug ?? ""} ${endpoint.id}`);
  return card(note, html`${field}${shown.length === 0 ? none : html`<${EndpointTable} rows=${shown} body=${(/** @type {any[]} */ all) => html`<${TableWindow} rows=${all} />`} />`}`);
}
