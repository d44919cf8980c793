// The settings of one endpoint, the changes that were made to them, and what ends the endpoint.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../dom.js";
import { endpointPath, go, place } from "../router.js";
import { count } from "../format.js";
import { useEndpoint } from "../fleet.js";
import { Ahead, Later } from "../load.js";
import { newSettings, readNewSettings } from "../new_settings.js";
import { may } from "../session.js";
import { defaultOf, isSame, parsed, readTagged, written } from "../settings.js";
import { fitted, groupsOf } from "../settings_fields.js";
import { refresh, useRead } from "../store.js";
import { Button } from "../ui/button.js";
import { Card, Empty, Failed, Loading } from "../ui/card.js";
import { EndpointEnd } from "../ui/endpoint_end.js";
import { EndpointHead } from "../ui/endpoint_head.js";
import { EndpointLoading, NoEndpoint } from "../ui/no_endpoint.js";
import { SettingField } from "../ui/setting_field.js";
import { useUnsaved } from "../ui/unsaved.js";
import { Versions } from "../ui/versions.js";

/** @typedef {import("../settings.js").Tagged} Tagged */

/** Templates and volumes that others make meanwhile are there to choose. */
const KNOWN_MS = 30000;
const TEMPLATES = "/v1/templates";
const VOLUMES = "/v1/networkvolumes";

export default function SettingsPage() {
  const name = place.value.params.endpoint;
  const { endpoint, isReadable, error, health, healthError } = useEndpoint(name);
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  if (!endpoint) return html`<${EndpointLoading} name=${name} />`;
  const head = html`<${EndpointHead} endpoint=${endpoint} health=${health} error=${healthError} isReadable=${isReadable} />`;
  if (!isReadable) return html`${head}<${Empty}><p>This key may not see the settings.</p><//>`;
  return html`${head}<${Settings} key=${endpoint.id} endpoint=${endpoint} health=${health}>
    <${Versions} endpoint=${endpoint} />
    ${endpoint.provider === "external" && may.change(endpoint.id) && html`<${Later} address="./ui/worker_token.js" props=${{ endpoint }} />`}
    ${may.change(endpoint.id) && html`<${EndpointEnd} endpoint=${endpoint} health=${health} />`}<//>`;
}

/**
 * The settings as they are stored. While something is typed, they stay as they were read, and `isOvertaken` says whether others are stored.
 * @param {string} path
 * @param {Endpoint} endpoint changes when the settings may have changed
 * @param {boolean} isTyped
 */
function useStored(path, endpoint, isTyped) {
  const [base, setBase] = useState(/** @type {Tagged | null} */ (null));
  const [error, setError] = useState(/** @type {import("../api.js").ApiError | null} */ (null));
  const [isOvertaken, setOvertaken] = useState(false);
  /** What is shown now: an answer comes later than it was asked for. */
  const present = useRef({ base, isTyped, reads: 0 });
  Object.assign(present.current, { base, isTyped });
  const accept = (/** @type {Tagged} */ next) => {
    setBase(next);
    setOvertaken(false);
  };
  const read = async () => {
    const number = (present.current.reads += 1);
    try {
      const next = await readTagged(path);
      if (number !== present.current.reads) return;
      setError(null);
      const isOther = next.text !== present.current.base?.text;
      if (isOther && present.current.base && present.current.isTyped) setOvertaken(true);
      else accept(next);
    } catch (failed) {
      setError(/** @type {import("../api.js").ApiError} */ (failed));
    }
  };
  useLayoutEffect(() => void read(), [path, JSON.stringify(endpoint)]);
  useEffect(() => {
    if (!isTyped && isOvertaken) void read();
  }, [isTyped]);
  return { base, error, isOvertaken, read, accept };
}

/**
 * Goes on at the address that an endpoint has now, if the page is still at the slug that it had; answers whether it was. What that page
 * shows is read by itself: to read all again would ask for the old slug, too.
 * @param {string} name the id or slug in the address when the endpoint was changed
 * @param {Record<string, any>} saved
 */
function follow(name, saved) {
  const { page, params } = place.peek();
  if (name === saved.id || name === saved.slug || page !== "settings" || params.endpoint !== name) return false;
  go(`${endpointPath(/** @type {Endpoint} */ (saved))}/settings`, { replace: true });
  return true;
}

/** @param {{endpoint: Endpoint, health: Health | undefined, children: any}} props `children` are below, and are shown with the settings, so that nothing moves */
function Settings({ endpoint, health, children }) {
  const { id } = endpoint;
  const name = place.value.params.endpoint;
  const path = `/v1/endpoints/${encodeURIComponent(id)}`;
  const [texts, setTexts] = useState(/** @type {Record<string, any>} */ ({}));
  const [isAsking, setAsking] = useState(false);
  const { base, error, isOvertaken, read, accept } = useStored(path, endpoint, Object.keys(texts).length > 0);
  const fields = newSettings.value;
  useEffect(() => void readNewSettings(), []);
  const templates = useRead(may.readsTemplates.value ? TEMPLATES : null, KNOWN_MS);
  const volumes = useRead(may.everything.value ? VOLUMES : null, KNOWN_MS);
  if (error && !base) return html`<${Failed} error=${error} onRetry=${read} />${children}`;
  if (!base) return html`<${Loading} rows=${8} />`;

  /** @type {Record<string, any>} */
  const changes = {};
  /** @type {Record<string, string>} */
  const faults = {};
  const groups = groupsOf(base.record).map((group) => ({ ...group, settings: group.settings.map((setting) => fitted(setting, base.record, { templates: templates.data, volumes: volumes.data })) }));
  const settings = groups.flatMap((group) => group.settings);
  for (const setting of settings) {
    const text = texts[setting.name];
    if (text === undefined) continue;
    const { value, fault } = Array.isArray(text) ? { value: text } : parsed(setting, text);
    if (fault) faults[setting.name] = fault;
    else if (!isSame(value, base.record[setting.name])) changes[setting.name] = value;
  }
  const mayChange = may.change(id);
  const set = (/** @type {string} */ name, /** @type {any} */ value) => {
    const { [name]: _, ...rest } = texts;
    const setting = /** @type {import("../settings_fields.js").Setting} */ (settings.find((one) => one.name === name));
    const stored = base.record[name];
    // What is typed back is not typed.
    setTexts(isSame(value, Array.isArray(value) ? stored : written(setting, stored)) ? rest : { ...rest, [name]: value });
  };
  const done = async (/** @type {Tagged} */ saved) => {
    setAsking(false);
    // What is typed before it is read again is a change of what was saved. What was typed while it was saved stays.
    accept(saved);
    setTexts((now) => Object.fromEntries(Object.entries(now).filter(([name, text]) => text !== texts[name])));
    if (follow(name, saved.record)) return;
    refresh("/v1/endpoints");
    await read();
  };
  return html`<${Unread} templates=${templates} volumes=${volumes} /><form class="settings" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    ${groups.map((group) => html`<${Card} key=${group.title} title=${group.title}><div class="settings-grid">
      ${group.settings.map((setting) => html`<${SettingField} key=${setting.name} setting=${setting} record=${base.record} usual=${fields && defaultOf(setting, fields)} text=${texts[setting.name]} fault=${faults[setting.name]} isOff=${!mayChange} onSet=${set} />`)}
    </div><//>`)}
    ${mayChange && html`<${Bar} number=${Object.keys(changes).length} isWrong=${Object.keys(faults).length > 0} isOvertaken=${isOvertaken} onUndo=${() => setTexts({})} onReview=${() => setAsking(true)} />`}
  </form>
  ${isAsking ? html`<${Later} address="./ui/settings_review.js" props=${{ path, settings, base, changes, health, onClose: () => setAsking(false), onDone: done, onReread: accept }} />` : mayChange && html`<${Ahead} address="./ui/settings_review.js" />`}
  ${children}`;
}

/** That what can be chosen could not be read. @param {Record<"templates" | "volumes", import("../store.js").Read<any>>} props */
function Unread(props) {
  const unread = Object.entries(props).filter(([, { data, error }]) => error && !data);
  if (unread.length === 0) return null;
  const again = () => {
    refresh(TEMPLATES);
    refresh(VOLUMES);
  };
  return html`<${Failed} what=${`The ${unread.map(([name]) => name).join(" and ")} to choose from`} error=${unread[0][1].error} onRetry=${again} />`;
}

/** How many settings are changed, and what can be done with them. @param {{number: number, isWrong: boolean, isOvertaken: boolean, onUndo: () => void, onReview: () => void}} props */
function Bar({ number, isWrong, isOvertaken, onUndo, onReview }) {
  const isUnsaved = number > 0 || isWrong;
  const { question } = useUnsaved(isUnsaved);
  return html`<div class="settings-bar">${question ?? html`
    <span class="dim grow" role="status">${number === 0 ? "Nothing is changed." : number === 1 ? "1 setting is changed." : `${count(number)} settings are changed.`}${isOvertaken && " The endpoint was changed meanwhile: what you typed is kept, and saving compares it with what is stored."}</span>
    ${isUnsaved && html`<${Button} kind="quiet" onClick=${onUndo}>Undo<//>`}
    <${Button} kind="primary" disabled=${number === 0 || isWrong} why=${isWrong ? "A setting has no valid value." : "Nothing is changed."} onClick=${onReview}>Review and save<//>`}
  </div>`;
}
