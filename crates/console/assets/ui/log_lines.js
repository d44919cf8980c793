// Printed lines with their times: they stick to the newest until one scrolls up, and older ones come at the top.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../dom.js";
import { endpointPath, href } from "../router.js";
import { count, dateTime, shortId, size } from "../format.js";
import { utc } from "../prefs.js";
import { LogReader } from "../log_reader.js";
import { joined, messageOf, pieces } from "../log_text.js";
import { Button } from "./button.js";
import { Card, Failed, Loading } from "./card.js";
import { Moment } from "./time.js";

/** @typedef {import("../log_text.js").LogLine} LogLine */

/** Lines that have nodes; older ones are a press away. */
const SHOWN_STEP = 1000;
/** A reader at most this many pixels above the end follows the newest lines. */
const END_PX = 40;

/**
 * `since`: when the first line could have been printed; that of a whole endpoint if it is not given.
 * @param {{endpoint: any, filter: import("../log_reader.js").LogFilter, title: string, since?: string, isOfAll?: boolean, isTall?: boolean}} props
 */
export function LogLines({ endpoint, filter, title, since = endpoint.createdAt, isOfAll = false, isTall = false }) {
  const [isWrapped, setWrapped] = useState(true);
  const [withTimes, setTimes] = useState(true);
  const key = JSON.stringify({ ...filter, regex: filter.regex?.source });
  const reader = useMemo(() => new LogReader(endpoint, filter), [endpoint.id, key]);
  useEffect(() => {
    void reader.begin();
    return () => reader.close();
  }, [reader]);
  void reader.version.value;
  const actions = html`<span class="switch" role="group" aria-label="Lines"><button type="button" aria-pressed=${withTimes} onClick=${() => setTimes(!withTimes)}>Times</button><button type="button" aria-pressed=${isWrapped} onClick=${() => setWrapped(!isWrapped)}>Wrap</button></span>
    <${Button} kind="quiet small" icon="download" onClick=${() => download(reader.lines, `${endpoint.slug ?? endpoint.id}.log`)}>Download<//>`;
  const note = reader.lines.length > 0 ? `${count(reader.lines.length)} lines${reader.cursor ? `, ${size(reader.scanned)} read so far` : ""}` : undefined;
  return html`<${Card} title=${title} note=${note} flush actions=${actions}>
    ${reader.error && html`<${Failed} error=${reader.error} onRetry=${() => reader.news()} />`}
    ${reader.lines.length > 0 ? html`<${Lines} reader=${reader} endpoint=${endpoint} isOfAll=${isOfAll} isWrapped=${isWrapped} withTimes=${withTimes} isTall=${isTall} />` : reader.isBegun ? html`<${NoLines} reader=${reader} endpoint=${endpoint} filter=${filter} since=${since} />` : !reader.error && html`<${Loading} rows=${6} />`}
  <//>`;
}

/** @param {{reader: LogReader, endpoint: any, filter: import("../log_reader.js").LogFilter, since?: string}} props */
function NoLines({ reader, endpoint, filter, since }) {
  const { worker: _, after, ...words } = filter;
  const isSearched = Object.values(words).some(Boolean);
  if (reader.cursor) return html`<div class="log-note dim">No line matches in the last ${size(reader.scanned)}. <${Button} kind="small" onClick=${() => reader.older()}>Search further back<//></div>`;
  if (endpoint.provider === "external") return html`<div class="log-note dim">The workers are started elsewhere, and what they print stays there.</div>`;
  return html`<div class="log-note dim">${isSearched ? "No line matches, of those printed" : "Nothing printed"} since <${Moment} at=${after ?? since} none="the start" />.</div>`;
}

/** @param {{reader: LogReader, endpoint: any, isOfAll: boolean, isWrapped: boolean, withTimes: boolean, isTall: boolean}} props */
function Lines({ reader, endpoint, isOfAll, isWrapped, withTimes, isTall }) {
  const [shown, setShown] = useState(SHOWN_STEP);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const sticks = useRef(true);
  const height = useRef({ first: "", pixels: 0 });
  const { lines } = reader;
  const groups = joined(lines.slice(-shown));
  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return;
    const first = groups[0]?.line.id ?? "";
    // What is being read stays where it is when older lines come above it.
    if (sticks.current) node.scrollTop = node.scrollHeight;
    else if (first !== height.current.first && height.current.pixels > 0) node.scrollTop += node.scrollHeight - height.current.pixels;
    height.current = { first, pixels: node.scrollHeight };
  });
  const scrolled = () => {
    const node = box.current;
    if (node) sticks.current = node.scrollHeight - node.scrollTop - node.clientHeight < END_PX;
  };
  const more = () => {
    if (shown < lines.length) setShown(shown + SHOWN_STEP);
    else void reader.older().then(() => setShown(shown + SHOWN_STEP));
  };
  const hasMore = shown < lines.length || reader.cursor !== null;
  return html`<div class=${`log-box ${isTall ? "tall" : ""} ${isWrapped ? "" : "unwrapped"}`} ref=${box} tabindex="0" role="log" aria-live="off" aria-label="Lines" onScroll=${scrolled}>
    ${hasMore ? html`<p class="log-more"><${Button} kind="small" onClick=${more}>Older lines<//></p>` : html`<p class="log-more dim">This is the first line that is kept.</p>`}
    ${groups.map(({ line, rest }) => html`<${Row} key=${line.id} line=${line} rest=${rest} endpoint=${endpoint} isOfAll=${isOfAll} withTimes=${withTimes} />`)}
  </div>`;
}

/** @param {{line: LogLine, rest: LogLine[], endpoint: any, isOfAll: boolean, withTimes: boolean}} props */
function Row({ line, rest, endpoint, isOfAll, withTimes }) {
  const [isOpen, setOpen] = useState(true);
  const tone = line.level === "ERROR" ? "bad" : line.level === "WARNING" ? "warned" : "";
  const path = endpointPath(endpoint);
  return html`<div class=${`log-row ${tone}`}>
    ${withTimes && html`<span class="log-at">${line.at ? html`<time datetime=${line.at} title=${dateTime(Date.parse(line.at), { utc: utc.value, ms: true })}>${dateTime(Date.parse(line.at), { utc: utc.value, ms: true }).slice(11, 21)}</time>` : "–"}</span>`}
    ${isOfAll && html`<a class="log-worker" href=${href(`${path}/workers/${encodeURIComponent(line.worker)}`)} title=${`Worker ${line.worker}`}>${line.worker.slice(-8)}</a>`}
    <span class="log-text">${rest.length > 0 && html`<button type="button" class="fold" aria-expanded=${isOpen} aria-label="Traceback" onClick=${() => setOpen(!isOpen)}><i class="icon icon-chevron" aria-hidden="true"></i></button>`}
      ${line.job && html`<a class="log-job" href=${href(`${path}/requests/${line.job}`)} title=${`Job ${line.job}`}>${shortId(line.job)}</a>`}${coloured(messageOf(line.text))}${isOpen ? rest.map((one) => html`${"\n"}${coloured(one.text)}`) : rest.length > 0 && html`${"\n"}${coloured(rest.at(-1)?.text ?? "")}`}</span>
  </div>`;
}

/** @param {string} text */
const coloured = (text) => pieces(text).map(({ text: piece, tone }, at) => (tone ? html`<span key=${at} class=${`tone-${tone}`}>${piece}</span>` : piece));

/** Saves the lines as a file. @param {LogLine[]} lines @param {string} name */
function download(lines, name) {
  const text = lines.map(({ at, worker, text: said }) => `${at ?? "-"} ${worker} ${said}\n`).join("");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
