// Printed lines with their times: they stick to the newest until one scrolls up, and older ones come at the top.
import { html, useCallback, useEffect, useMemo, useState } from "../dom.js";
import { endpointPath, href } from "../router.js";
import { count, dateTime, shortId, size } from "../format.js";
import { utc } from "../prefs.js";
import { LogReader } from "../log_reader.js";
import { groupsOf } from "../log_blocks.js";
import { messageOf, pieces } from "../log_text.js";
import { Button } from "./button.js";
import { Card, Failed, Loading } from "./card.js";
import { LogWindow } from "./log_window.js";
import { Moment } from "./time.js";

/** @typedef {import("../log_blocks.js").Block} Block */
/** @typedef {import("../log_text.js").LogLine} LogLine */

/**
 * `since`: when the first line could have been printed; that of a whole endpoint if it is not given.
 * `marked`: lines with this text are marked. Such a log stands beside another long response, which comes first.
 * @param {{endpoint: Endpoint, filter: import("../log_reader.js").LogFilter, title: string, since?: string, marked?: string, isOfAll?: boolean, isTall?: boolean}} props
 */
export function LogLines({ endpoint, filter, title, since = endpoint.createdAt, marked = "", isOfAll = false, isTall = false }) {
  const [isWrapped, setWrapped] = useState(true);
  const [withTimes, setTimes] = useState(true);
  const reader = useMemo(() => new LogReader(endpoint, filter, marked !== ""), [endpoint.id, JSON.stringify(filter)]);
  useEffect(() => {
    reader.begin();
    return () => reader.close();
  }, [reader]);
  void reader.version.value;
  const actions = html`<span class="switch" role="group" aria-label="Lines"><button type="button" aria-pressed=${withTimes} onClick=${() => setTimes(!withTimes)}>Times</button><button type="button" aria-pressed=${isWrapped} onClick=${() => setWrapped(!isWrapped)}>Wrap</button></span>
    <${Button} kind="quiet small" icon="download" onClick=${() => download(reader.lines.lines(), `${endpoint.slug ?? endpoint.id}.log`)}>Download<//>`;
  const note = reader.lines.count > 0 ? `${count(reader.lines.count)} lines${reader.cursor ? `, ${size(reader.scanned)} read so far` : ""}` : undefined;
  return html`<${Card} title=${title} note=${note} flush actions=${actions}>
    ${reader.error && html`<${Failed} error=${reader.error} onRetry=${() => reader.restart()} />`}
    ${reader.lines.count > 0 ? html`<${Lines} reader=${reader} endpoint=${endpoint} marked=${marked} isOfAll=${isOfAll} isWrapped=${isWrapped} withTimes=${withTimes} isTall=${isTall} />` : reader.isBegun ? html`<${NoLines} reader=${reader} endpoint=${endpoint} filter=${filter} since=${since} isOfAll=${isOfAll} />` : !reader.error && html`<${Loading} rows=${6} />`}
  <//>`;
}

/** @param {{reader: LogReader, endpoint: Endpoint, filter: import("../log_reader.js").LogFilter, since?: string, isOfAll: boolean}} props */
function NoLines({ reader, endpoint, filter, since, isOfAll }) {
  const { worker, after, ...words } = filter;
  const whose = worker ? ` by worker ${worker}` : "";
  const isSearched = Object.values(words).some(Boolean);
  if (reader.cursor) return html`<div class="log-note dim">No line matches in the last ${size(reader.scanned)}. <${Button} kind="small" onClick=${() => reader.older()}>Search further back<//></div>`;
  if (endpoint.provider === "external") return html`<div class="log-note dim">The workers are started elsewhere, and what they print stays there.</div>`;
  return html`<div class="log-note dim">${isSearched ? "No line matches, of those printed" : "Nothing printed"}${whose} since <${Moment} at=${after ?? since} none="the start" />.${!isSearched && isOfAll && " What its workers print comes here."}</div>`;
}

/** @param {{reader: LogReader, endpoint: Endpoint, marked: string, isOfAll: boolean, isWrapped: boolean, withTimes: boolean, isTall: boolean}} props */
function Lines({ reader, endpoint, marked, isOfAll, isWrapped, withTimes, isTall }) {
  const { lines } = reader;
  const path = endpointPath(endpoint);
  const draw = useCallback((/** @type {Block} */ block) => groupsOf(block).map(({ line, rest }) => html`<${Row} key=${line.id} line=${line} rest=${rest} path=${path} marked=${marked} isOfAll=${isOfAll} withTimes=${withTimes} />`), [path, marked, isOfAll, withTimes]);
  const head = reader.cursor ? html`<p class="log-more"><${Button} kind="small" onClick=${() => reader.older()}>Older lines<//></p>` : html`<p class="log-more dim">This is the first line that is kept.</p>`;
  return html`<${LogWindow} blocks=${lines.blocks} className=${`${isTall ? "tall" : ""} ${isWrapped ? "" : "unwrapped"}`} head=${head} draw=${draw} onEnd=${(/** @type {boolean} */ isAtEnd) => (reader.isAtEnd = isAtEnd)} onNear=${() => reader.needsPress || void reader.older()} />
    ${reader.isBehind && html`<p class="log-more dim">Newer lines are left out while you read older ones. <${Button} kind="small" onClick=${() => reader.restart()}>Newest lines<//></p>`}`;
}

/** @param {{line: LogLine, rest: LogLine[], path: string, marked: string, isOfAll: boolean, withTimes: boolean}} props */
function Row({ line, rest, path, marked, isOfAll, withTimes }) {
  const [isOpen, setOpen] = useState(true);
  const isMarked = marked !== "" && (line.job === marked || line.text.includes(marked));
  const tone = line.level === "ERROR" ? "bad" : line.level === "WARNING" ? "warned" : isMarked ? "named" : "";
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
