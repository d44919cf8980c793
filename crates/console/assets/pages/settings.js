// The settings of one endpoint, the changes that were made to them, and what ends the endpoint.
import { html, useEffect, useRef, useState } from "../dom.js";
import * as api from "../api.js";
import { endpointPath, go, href, place } from "../router.js";
import { count } from "../format.js";
import { useEndpoint } from "../fleet.js";
import { may } from "../session.js";
import { defaultOf, effects, isSame, parsed, patchOf, readRecord, shown, written } from "../settings.js";
import { fitted, groupsOf } from "../settings_fields.js";
import { refresh, useRead } from "../store.js";
import { Button } from "../ui/button.js";
import { Card, Empty, Failed, Loading } from "../ui/card.js";
import { DrainAll } from "../ui/drain_all.js";
import { DeleteByName } from "../ui/delete_by_name.js";
import { Dialog } from "../ui/dialog.js";
import { EndpointHead, EndpointLoading, NoEndpoint } from "../ui/endpoint_head.js";
import { Differences, OvertakenAlert } from "../ui/overtaken.js";
import { SettingField } from "../ui/setting_field.js";
import { toast } from "../ui/toast.js";
import { useUnsaved } from "../ui/unsaved.js";
import { Versions } from "../ui/versions.js";
import { workersPath } from "../ui/worker_table.js";
import { WorkerToken } from "../ui/worker_token.js";

/** How often the workers are read without events. */
const WORKERS_MS = 5000;
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
  return html`${head}<${Settings} key=${endpoint.id} endpoint=${endpoint} health=${health} />
    <${Versions} endpoint=${endpoint} />
    ${endpoint.provider === "external" && may.change(endpoint.id) && html`<${WorkerToken} endpoint=${endpoint} />`}
    ${may.change(endpoint.id) && html`<${End} endpoint=${endpoint} health=${health} />`}`;
}

/**
 * @typedef {{record: any, tag: string | null, text: string}} Tagged the settings as they were read, with their `ETag`; `tag` is null for those
 *   that a change has answered
 */

/** Reads the settings. @param {string} path @returns {Promise<Tagged>} */
async function readTagged(path) {
  const { text, tag } = await api.tagged("GET", path);
  return { record: readRecord(text), tag, text };
}

/**
 * The settings as they are stored. While something is typed, they stay as they were read, and `isOvertaken` says whether others are stored.
 * @param {string} path
 * @param {Endpoint} endpoint changes when the settings may have changed
 * @param {boolean} isTyped
 */
function useStored(path, endpoint, isTyped) {
  const [base, setBase] = useState(/** @type {Tagged | null} */ (null));
  const [error, setError] = useState(/** @type {api.ApiError | null} */ (null));
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
      setError(/** @type {api.ApiError} */ (failed));
    }
  };
  useEffect(() => void read(), [path, JSON.stringify(endpoint)]);
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

/** @param {{endpoint: Endpoint, health: Health | undefined}} props */
function Settings({ endpoint, health }) {
  const { id } = endpoint;
  const name = place.value.params.endpoint;
  const path = `/v1/endpoints/${encodeURIComponent(id)}`;
  const [texts, setTexts] = useState(/** @type {Record<string, any>} */ ({}));
  const [isAsking, setAsking] = useState(false);
  const { base, error, isOvertaken, read, accept } = useStored(path, endpoint, Object.keys(texts).length > 0);
  // What a new endpoint has is said by the API's document.
  const fields = useRead("/v1/openapi.json", Infinity).data?.components.schemas.EndpointCreateInput?.properties;
  const templates = useRead(may.readsTemplates.value ? TEMPLATES : null, KNOWN_MS);
  const volumes = useRead(may.everything.value ? VOLUMES : null, KNOWN_MS);
  if (error && !base) return html`<${Failed} error=${error} onRetry=${read} />`;
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
  ${isAsking && html`<${Review} path=${path} settings=${settings} base=${base} changes=${changes} health=${health} onClose=${() => setAsking(false)} onDone=${done} onReread=${accept} />`}`;
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

/**
 * What is saved: each setting as it is and as it will be, and what that does.
 * @param {{path: string, settings: import("../settings_fields.js").Setting[], base: Tagged, changes: Record<string, any>, health: Health | undefined, onClose: () => void, onDone: (saved: Tagged) => void, onReread: (base: Tagged) => void}} props
 */
function Review({ path, settings, base, changes, health, onClose, onDone, onReread }) {
  const [error, setError] = useState("");
  const [isOvertaken, setOvertaken] = useState(false);
  const show = (/** @type {Tagged} */ stored) => {
    onReread(stored);
    setOvertaken(true);
  };
  const save = async () => {
    setError("");
    try {
      // Without the `ETag` of what is shown, it is compared with what is stored.
      const stored = base.tag ? base : await readTagged(path);
      if (stored.text !== base.text) return show(stored);
      const saved = await api.text("PATCH", path, { rawBody: patchOf(base.record, changes), headers: stored.tag ? { "If-Match": stored.tag } : {} });
      toast("The settings are saved.");
      onDone({ record: readRecord(saved), tag: null, text: saved });
    } catch (failed) {
      const { status, message } = /** @type {api.ApiError} */ (failed);
      if (status !== 412) return setError(message);
      // Another has changed the endpoint: what it is now is shown beside what is to be saved.
      try {
        show(await readTagged(path));
      } catch (unread) {
        setError(`Nothing is saved: it was changed meanwhile, and what is stored now could not be read. ${/** @type {api.ApiError} */ (unread).message}`);
      }
    }
    return undefined;
  };
  const rows = settings.filter(({ name }) => name in changes);
  const sentences = effects(base.record, changes, health);
  return html`<${Dialog} title="Save these changes?" wide onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>Go back<//><${Button} kind="primary" disabled=${rows.length === 0} why="The fields are as they are stored." onClick=${save}>Save<//>`}>
    ${isOvertaken && html`<${OvertakenAlert} what="endpoint" />`}
    <${Differences} rows=${rows.map((setting) => ({ name: setting.name, title: setting.title, now: shown(setting, base.record[setting.name]), then: shown(setting, changes[setting.name]), isJson: setting.kind === "json" }))} />
    ${sentences.length > 0 && html`<ul class="plain">${sentences.map((sentence) => html`<li key=${sentence}>${sentence}</li>`)}</ul>`}
    ${error && html`<p class="field-error" role="alert">${error}</p>`}
  <//>`;
}

/** @param {{endpoint: Endpoint, health: Health | undefined}} props */
function End({ endpoint, health }) {
  const [isAsking, setAsking] = useState(false);
  const workers = useRead(workersPath(endpoint), WORKERS_MS).data;
  return html`${endpoint.provider !== "external" && html`<${Card} title="Drain"><div class="form"><p>All workers end after their jobs, and others start in their place when they are needed: what they have loaded is loaded anew.</p>
    <div><${DrainAll} endpoint=${endpoint} workers=${workers} health=${health} kind="" /></div></div><//>`}
  <${Card} title="Delete"><div class="form"><p>The endpoint is deleted with its jobs, their results and its history. That cannot be undone.</p>
    <p><${Button} kind="danger" onClick=${() => setAsking(true)}>Delete this endpoint<//></p></div>
    ${isAsking && html`<${Delete} endpoint=${endpoint} health=${health} onClose=${() => setAsking(false)} />`}<//>`;
}

/** @param {{endpoint: Endpoint, health: Health | undefined, onClose: () => void}} props */
function Delete({ endpoint, health, onClose }) {
  const remove = async () => {
    await api.json("DELETE", `/v1/endpoints/${encodeURIComponent(endpoint.id)}`);
    toast(`${endpoint.name} is deleted.`);
    refresh("/v1/endpoints");
    go("/endpoints", { replace: true });
  };
  const jobs = health ? `${count(health.jobs.inQueue)} waiting and ${count(health.jobs.inProgress)} running jobs are dropped.` : "";
  return html`<${DeleteByName} name=${endpoint.name} onDelete=${remove} onClose=${onClose}>
    <p>${jobs} Requests to <span class="mono">${href("").replace(/\/console$/, "")}/v2/${endpoint.slug ?? endpoint.id}</span> get 404.</p>
  <//>`;
}
