// A payload: as a tree with its pictures, or as text; copied and downloaded as it came.
import { html, useMemo, useState } from "../dom.js";
import { saveFile } from "../csv.js";
import { size, visible } from "../format.js";
import { Button } from "./button.js";
import { Card } from "./card.js";
import { CopyButton } from "./copy.js";
import { JsonSearch } from "./json_search.js";
import { JsonTree } from "./json_tree.js";
import { MediaGrid, mediaIn } from "./media.js";
import { useTree } from "./use_tree.js";

/** Larger payloads are folded at first. */
const UNFOLDED_BYTES_MAX = 1000000;
/** Larger texts are cut: browsers lay out no more. */
const RAW_SHOWN = 200000;

/** @param {{title: string, text: string, name: string}} props `text` as it came; `name` of the file to download */
export function Viewer({ title, text, name }) {
  const [isRaw, setRaw] = useState(false);
  const [found, setFound] = useState(/** @type {import("../json_find.js").Path | null} */ (null));
  const { node, isReading } = useTree(text);
  const bytes = useMemo(() => new Blob([text]).size, [text]);
  const media = useMemo(() => (node ? mediaIn(node) : []), [node]);
  const download = () => saveFile(name, [text], "application/json");
  const actions = html`<span class="switch" role="group" aria-label="View"><button type="button" aria-pressed=${!isRaw} onClick=${() => setRaw(false)}>Tree</button><button type="button" aria-pressed=${isRaw} onClick=${() => setRaw(true)}>Text</button></span>
    <${CopyButton} text=${text} label=${`Copy ${title.toLowerCase()}`} kind="quiet small" /><${Button} kind="quiet small icon-only" icon="download" label=${`Download ${title.toLowerCase()}`} onClick=${download} />`;
  return html`<${Card} title=${title} note=${size(bytes)} actions=${actions}>
    ${isReading && !isRaw
      ? html`<p class="dim" role="status">This is ${size(bytes)}: the tree is being made.</p>`
      : isRaw || !node
        ? html`<pre class="raw" tabindex="0">${visible(text.slice(0, RAW_SHOWN))}${text.length > RAW_SHOWN ? "\n… cut; the download has all of it" : ""}</pre>`
        : html`<${MediaGrid} media=${media} />${"text" in node ? "" : html`<${JsonSearch} title=${title} node=${node} onFound=${setFound} />`}<${JsonTree} node=${node} found=${found} isFolded=${text.length > UNFOLDED_BYTES_MAX} />`}
  <//>`;
}
