// What all workers of an endpoint printed, by time, searched.
import { html, useMemo } from "../dom.js";
import { place, setQuery } from "../router.js";
import { useEndpoint } from "../fleet.js";
import { isInYears, typedMoment } from "../filter.js";
import { utc } from "../prefs.js";
import { Empty } from "../ui/card.js";
import { EndpointHead } from "../ui/endpoint_head.js";
import { useKeys } from "../ui/keys.js";
import { LogLines } from "../ui/log_lines.js";
import { EndpointLoading, NoEndpoint } from "../ui/no_endpoint.js";
import { useTyped } from "../ui/typed.js";

const LEVELS = /** @type {[string, string | null][]} */ ([["All", null], ["Warnings", "WARNING"], ["Errors", "ERROR"]]);
/** The least level that is shown, by what one types; the server tells errors and warnings from other lines. */
const LEAST = /** @type {Record<string, "ERROR" | "WARNING" | "INFO" | "DEBUG">} */ ({ CRITICAL: "ERROR", FATAL: "ERROR", ERROR: "ERROR", WARNING: "WARNING", WARN: "WARNING", INFO: "INFO", DEBUG: "DEBUG", TRACE: "DEBUG" });
const TOKEN = /(?:worker|job|level|after):\S+/.source;
/** A regex, with tokens before and after it: what is between the slashes is all of the regex. */
const REGEX = new RegExp(`^((?:${TOKEN}\\s+)*)/(.+)/(i?)((?:\\s+${TOKEN})*)$`);
const UNITS = /** @type {Record<string, number>} */ ({ s: 1000, min: 60000, h: 3600000, d: 86400000 });

export default function Logs() {
  const name = place.value.params.endpoint;
  const { endpoint, isReadable, error, health, healthError } = useEndpoint(name);
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  if (!endpoint) return html`<${EndpointLoading} name=${name} />`;
  const head = html`<${EndpointHead} endpoint=${endpoint} health=${health} error=${healthError} isReadable=${isReadable} />`;
  if (!isReadable) return html`${head}<${Empty}><p>This key may not read the logs.</p><//>`;
  return html`${head}<${Search} endpoint=${endpoint} />`;
}

/**
 * The filter of a search line: tokens such as `worker:`, and the rest as a text or as `/regex/`.
 * @param {string} line
 * @param {string | null} level
 * @returns {{filter: import("../log_reader.js").LogFilter, fault: string}}
 */
function parsed(line, level) {
  /** @type {import("../log_reader.js").LogFilter} */
  const filter = {};
  let chosen = level ?? "DEBUG";
  const regex = REGEX.exec(line.trim());
  const rest = (regex ? regex[1] + regex[4] : line).replace(/\b(worker|job|level|after):(\S+)/g, (_, name, value) => {
    if (name === "after") filter.after = moment(value) ?? "?";
    else if (name === "level") chosen = value;
    else filter[/** @type {"worker" | "job"} */ (name)] = value;
    return "";
  }).trim();
  if (filter.after === "?") return { filter: {}, fault: "`after:` takes a duration such as 10min, 2h or 1d, or a time such as 2030-01-31T12:00." };
  const least = LEAST[chosen.toUpperCase()];
  if (!least) return { filter: {}, fault: "`level:` takes error, warning, info or debug: lines of this level and of worse ones." };
  if (least !== "DEBUG") filter.level = least;
  return { filter: regex ? { ...filter, regex: regex[3] ? `(?i)${regex[2]}` : regex[2] } : { ...filter, q: rest }, fault: "" };
}

/** A time before now, or a time itself, as RFC 3339. @param {string} text */
function moment(text) {
  const ago = /^(\d+(?:\.\d+)?)(s|min|h|d)$/.exec(text);
  // To the minute, so that the search does not begin again with every render.
  const at = ago ? Math.floor((Date.now() - Number(ago[1]) * UNITS[ago[2]]) / 60000) * 60000 : typedMoment(text);
  return at === null || !isInYears(at) ? null : new Date(at).toISOString();
}

/** @param {{endpoint: Endpoint}} props */
function Search({ endpoint }) {
  const { query } = place.value;
  const line = query.get("q") ?? "";
  const level = query.get("level");
  const { text, setText } = useTyped(line, (q) => setQuery({ q }));
  useKeys([{ key: "/", does: "Search the logs", act: () => document.getElementById("log-search")?.focus() }]);
  const { filter, fault } = useMemo(() => parsed(line, level), [line, level, line.includes("after:") && utc.value]);
  return html`<div class="filters log-filters">
      <input id="log-search" type="search" aria-label="Search the logs" aria-invalid=${fault ? "true" : undefined} aria-describedby=${fault ? "log-fault" : undefined} placeholder="Text, /regex/, worker:… job:… level:warning after:10min" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
      <div class="chips" role="group" aria-label="Level">${LEVELS.map(([word, value]) => html`<button type="button" key=${word} class="chip" aria-pressed=${level === value} onClick=${() => setQuery({ level: value })}>${word}</button>`)}</div>
      ${fault && html`<p id="log-fault" class="field-error">${fault}</p>`}
    </div>
    ${!fault && html`<${LogLines} key=${endpoint.id} endpoint=${endpoint} filter=${filter} title="Lines" isOfAll isTall />`}`;
}
