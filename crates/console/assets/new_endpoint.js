// What the form of a new endpoint holds, and the request and the command that it becomes.
import { parseWords } from "./shell_words.js";
import { count } from "./format.js";
import { quotedForShell } from "./ui/copy_as.js";

/**
 * @typedef {"folder" | "command" | "image" | "template" | "external"} Source
 * @typedef {{
 *   source: Source, name: string, slug: string, command: string, workdir: string, image: string, registry: string, template: string,
 *   provider: string, env: string, secrets: string[], volumes: string[], gpuCount: string, gpuTypes: string[],
 *   workersMin: string, workersMax: string, idleTimeout: string,
 * }} Draft `provider` is that of workers of an existing template
 */

/** The first form. @param {Machine[]} machines @returns {Draft} */
export const emptyDraft = (machines) => ({
  source: "command", name: "", slug: "", command: "", workdir: "", image: "", registry: "", template: "", provider: "process", env: "", secrets: [], volumes: [],
  gpuCount: machines.some(({ gpus }) => gpus.length > 0) ? "1" : "0", gpuTypes: [], workersMin: "0", workersMax: "3", idleTimeout: "5",
});

/** A name that a variable can have. */
export const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const SLUG = /^[A-Za-z0-9][A-Za-z0-9._-]*(\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/;

/** The variables of lines such as `NAME=value`, between quotes or not. @param {string} text @returns {{env: Record<string, string>, fault: string}} */
export function parseEnv(text) {
  /** @type {Record<string, string>} */
  const env = {};
  for (const line of text.split("\n").map((one) => one.trim()).filter((one) => one && !one.startsWith("#"))) {
    const [name, ...rest] = line.replace(/^export\s+/, "").split("=");
    if (rest.length === 0 || !VARIABLE.test(name)) return { env, fault: `“${line.slice(0, 60)}” is not NAME=value.` };
    const value = rest.join("=");
    const isQuoted = value.length > 1 && /^["']/.test(value) && value.endsWith(value[0]);
    env[name] = isQuoted ? value.slice(1, -1) : value;
  }
  return { env, fault: "" };
}

/** Whether a text is a whole number in a range. @param {string} text @param {number} min @param {number} max */
const isWhole = (text, min, max) => /^\d+$/.test(text.trim()) && Number(text) >= min && Number(text) <= max;

/** What is missing or cannot be, as a sentence; empty if nothing is. @param {Draft} draft @param {Machine[]} machines */
export function faultOf(draft, machines) {
  const of = sourceFault(draft);
  if (of) return of;
  if (!draft.name.trim()) return "Give it a name.";
  if (draft.slug.trim() && (draft.slug.trim().length < 2 || !SLUG.test(draft.slug.trim()))) return "A slug has letters, digits, dots, hyphens and underscores, and begins with a letter or a digit.";
  if (!isWhole(draft.gpuCount, 0, 1024)) return "The number of GPUs is a whole number.";
  const gpus = hasGpus(draft) ? gpuNews(draft, machines) : null;
  if (gpus?.isImpossible) return gpus.text;
  if (!isWhole(draft.workersMin, 0, 10000) || !isWhole(draft.workersMax, 0, 10000)) return "The numbers of workers are whole numbers.";
  if (Number(draft.workersMin) > Number(draft.workersMax)) return "There cannot be more workers at all times than at most.";
  return isWhole(draft.idleTimeout, 1, 3600) ? "" : "A worker idles for 1 to 3600 s.";
}

/** @param {Draft} draft */
function sourceFault({ source, command, image, template, env }) {
  if (source === "command" && !command.trim()) return "Write the command that starts a worker.";
  if (source === "image" && !image.trim()) return "Name the image.";
  if (source === "template") return template ? "" : "Choose a template.";
  if (source === "external") return "";
  if (parseWords(command) === null) return "A quotation mark of the command has no partner.";
  return parseEnv(env).fault;
}

/** Whether workers of it get GPUs of this server's machines. @param {Draft} draft */
export const hasGpus = (draft) => draft.source !== "external" && !(draft.source === "template" && draft.provider === "external");

/**
 * What the machines have for its workers, as a sentence.
 * @param {Draft} draft
 * @param {Machine[]} machines
 * @returns {{isImpossible: boolean, isWaiting: boolean, text: string}}
 */
export function gpuNews({ gpuCount, gpuTypes }, machines) {
  const wanted = Number(gpuCount);
  const all = machines.flatMap(({ gpus }) => gpus);
  const news = { isImpossible: false, isWaiting: false };
  if (all.length === 0) return { ...news, text: wanted > 0 ? "No GPU is known on this server: workers start without regard to GPUs." : "Its workers get no GPU." };
  if (!(wanted > 0)) return { ...news, text: "Its workers get no GPU." };
  const types = gpuTypes.length > 0 ? gpuTypes : [...new Set(all.map(({ typeId }) => typeId))];
  // The GPUs of a worker are on one machine, and of one type.
  const groups = machines.flatMap(({ gpus }) => types.map((type) => gpus.filter((/** @type {any} */ gpu) => gpu.typeId === type && !gpu.fault)));
  const most = Math.max(0, ...groups.map((group) => group.length));
  const faulty = all.filter(({ typeId, fault }) => fault && types.includes(typeId)).length;
  const has = `${most === 0 ? "no machine has one" : `no machine has more than ${most}`}${faulty > 0 ? ` without a fault (${count(faulty)} with one)` : ""}`;
  if (most < wanted) return { isImpossible: true, isWaiting: false, text: `A worker asks for ${wanted} ${types.length === 1 ? types[0] : "GPUs of one type"}, and ${has}: it could never start.` };
  const now = groups.reduce((sum, group) => sum + Math.floor(group.filter((/** @type {any} */ gpu) => !gpu.worker).length / wanted), 0);
  if (now === 0) return { isImpossible: false, isWaiting: true, text: "All of them are taken now: the first worker waits until one ends." };
  return { ...news, text: now === 1 ? "One worker can start now." : `${count(now)} workers can start now.` };
}

/** The template that its workers run. @param {Draft} draft */
function templateOf(draft) {
  const words = parseWords(draft.command) ?? [];
  const env = { ...parseEnv(draft.env).env, ...Object.fromEntries(draft.secrets.map((secret) => [secret, { secret }])) };
  const isImage = draft.source === "image";
  return {
    name: draft.name.trim(),
    ...(isImage && { imageName: draft.image.trim(), ...(draft.registry && { containerRegistryAuthId: draft.registry }) }),
    ...(words.length > 0 && { dockerStartCmd: words }),
    ...(!isImage && draft.workdir.trim() && { workdir: draft.workdir.trim() }),
    ...(Object.keys(env).length > 0 && { env }),
  };
}

/** The fields of its GPUs. @param {Draft} draft */
function gpusOf(draft) {
  const wanted = Number(draft.gpuCount);
  return wanted > 0 ? { gpuCount: wanted, ...(draft.gpuTypes.length > 0 && { gpuTypeIds: draft.gpuTypes }) } : { computeType: "CPU" };
}

const PROVIDERS = { command: "process", image: "docker", external: "external" };

/** The body of `POST /v1/endpoints`. @param {Draft} draft @returns {Record<string, any>} */
export function bodyOf(draft) {
  const { source, slug, volumes } = draft;
  return {
    name: draft.name.trim(),
    ...(slug.trim() && { slug: slug.trim() }),
    ...(source === "template" ? { templateId: draft.template, provider: draft.provider } : { provider: PROVIDERS[/** @type {"command"} */ (source)] }),
    ...(hasGpus(draft) && gpusOf(draft)),
    ...(hasGpus(draft) && volumes.length > 0 && { networkVolumeIds: volumes }),
    workersMin: Number(draft.workersMin),
    workersMax: Number(draft.workersMax),
    idleTimeout: Number(draft.idleTimeout),
    ...(source === "external" ? { template: { name: draft.name.trim() } } : source !== "template" && { template: templateOf(draft) }),
  };
}

/** The flags of `longshore endpoint create`, and the fields that they set. */
const FLAGS = { name: "--name", slug: "--slug", templateId: "--template", provider: "--provider", gpuCount: "--gpu-count", workersMin: "--workers-min", workersMax: "--workers-max", idleTimeout: "--idle-timeout" };

/** The command that sends the same. @param {Record<string, any>} body */
export function commandOf(body) {
  const quoted = (/** @type {any} */ value) => (/^[\w.,/-]+$/.test(String(value)) ? String(value) : quotedForShell(String(value)));
  const parts = Object.entries(FLAGS).filter(([field]) => body[field] !== undefined).map(([field, flag]) => `${flag} ${quoted(body[field])}`);
  for (const type of body.gpuTypeIds ?? []) parts.push(`--gpu-type ${quoted(type)}`);
  const rest = Object.fromEntries(Object.entries(body).filter(([field]) => !(field in FLAGS) && field !== "gpuTypeIds"));
  if (Object.keys(rest).length > 0) parts.push(`--json ${quotedForShell(JSON.stringify(rest))}`);
  return `longshore endpoint create \\\n  ${parts.join(" \\\n  ")}`;
}

/** What will happen with these numbers of workers, in words. @param {Draft} draft */
export function scalingWords({ source, provider, workersMin, workersMax, idleTimeout }) {
  const [min, max] = [Number(workersMin), Number(workersMax)];
  if (max === 0) return "It is paused: jobs wait until the most workers are 1 or more.";
  if (source === "external" || (source === "template" && provider === "external")) return "You start and end its workers: these numbers change nothing but whether it is paused.";
  const seconds = `A worker that had no job for ${idleTimeout} s ends.`;
  if (min === max) return `${workersOf(min)} at all times, whether jobs wait or not.`;
  const grows = `When jobs wait for more than 4 s, workers are added, up to ${count(max)}. ${seconds}`;
  return min === 0 ? `Nothing runs without a job. The first job starts a worker and waits for it. ${grows}` : `${workersOf(min)} at all times. ${grows}`;
}

/** @param {number} number */
const workersOf = (number) => (number === 1 ? "One worker runs" : `${count(number)} workers run`);
