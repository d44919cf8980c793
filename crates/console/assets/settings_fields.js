// The settings of an endpoint in groups: what each means, and what it is when nothing is set.

/**
 * @typedef {"text" | "number" | "ms" | "seconds" | "bytes" | "share" | "flag" | "word" | "words" | "texts" | "json"} Kind
 * @typedef {{name: string, title: string, kind: Kind, text: string, words?: string[], labels?: Record<string, string>, none?: string, orNone?: string, forwarded?: string, unset?: any}} Setting
 *   `text` says what it means, `forwarded` for load-balancing endpoints · `labels` are what people read in place of words, `none` where there is no word · `orNone` says what
 *   no value means; without it there has to be one · `unset` is what a new endpoint has, where the API's document does not say it. A name with a
 *   point is a member of an object
 * @typedef {{title: string, of?: "QUEUE" | "LB", settings: Setting[]}} Group `of`: only endpoints of this type have it
 */

const SCALERS = ["QUEUE_DELAY", "REQUEST_COUNT", "IDLE_GAPS"];
const EVENTS = ["completed", "failed", "cancelled", "timed_out", "progress"];

/** @type {Group[]} */
const GROUPS = [
  {
    title: "Scaling",
    settings: [
      { name: "workersMin", title: "Fewest workers", kind: "number", text: "They run even when nothing is queued." },
      { name: "workersMax", title: "Most workers", kind: "number", text: "0 pauses the endpoint: running jobs finish, others wait.", forwarded: "0 pauses the endpoint: outstanding requests finish, others wait." },
      { name: "idleTimeout", title: "Idle timeout", kind: "seconds", text: "An idle worker ends after this time. In seconds." },
      { name: "idleTimeoutMax", title: "Longest idle timeout", kind: "seconds", text: "With IDLE_GAPS, an idle worker ends after this time at the latest." },
      { name: "scalerType", title: "A worker is added", kind: "word", words: SCALERS, text: "QUEUE_DELAY: when a job waits too long. REQUEST_COUNT: one for a number of jobs. IDLE_GAPS: as QUEUE_DELAY, and idle workers wait for the next job as long as pauses usually are.", forwarded: "QUEUE_DELAY: when a request waits too long. REQUEST_COUNT: one for a number of requests, waiting and outstanding ones. IDLE_GAPS: as QUEUE_DELAY, and idle workers wait for the next request as long as pauses usually are." },
      { name: "scalerValue", title: "Threshold", kind: "number", text: "Seconds that a job may wait, or jobs per worker.", forwarded: "Seconds that a request may wait, or requests per worker." },
      { name: "startPatienceMs", title: "Start patience", kind: "ms", text: "A worker that asks for no job within this time is replaced.", forwarded: "A worker that is not healthy within this time is replaced." },
      { name: "stopGraceMs", title: "Stop grace", kind: "ms", text: "From a job's stop signal to the end of its worker.", forwarded: "From the signal that ends a worker to its end by force.", orNone: "the server's setting" },
    ],
  },
  {
    title: "Program",
    settings: [
      { name: "templateId", title: "Template", kind: "word", words: [], text: "The command or image that workers are started from. A change makes a new version." },
      { name: "networkVolumeId", title: "Volume", kind: "word", words: [], text: "A folder that its workers share. A change makes a new version.", orNone: "none" },
      { name: "networkVolumeIds", title: "More volumes", kind: "words", words: [], text: "A change makes a new version." },
    ],
  },
  {
    title: "Hardware",
    settings: [
      { name: "computeType", title: "Hardware", kind: "word", words: ["GPU", "CPU"], text: "Workers of GPU endpoints get GPUs where the server knows any." },
      { name: "gpuCount", title: "GPUs of a worker", kind: "number", text: "They are on one machine." },
      { name: "gpuTypeIds", title: "GPU types", kind: "texts", text: "In order of preference, between commas. None: any type." },
      { name: "memoryBytes", title: "Most memory", kind: "bytes", text: "A worker above it is ended. In bytes.", orNone: "no limit" },
      { name: "vcpus", title: "Most processors", kind: "number", text: "Of one worker with all that it starts.", orNone: "no limit" },
    ],
  },
  {
    title: "Requests",
    of: "LB",
    settings: [
      { name: "lb.port", title: "Port", kind: "number", text: "On which workers serve HTTP: they get it as PORT. A change replaces them.", orNone: "PORT of the template, or a free one" },
      { name: "lb.healthPort", title: "Port of the health check", kind: "number", text: "Workers get it as PORT_HEALTH. A change replaces them.", orNone: "the port of the requests" },
      { name: "lb.healthPath", title: "Path of the health check", kind: "text", text: "200 is healthy, 204 is starting, another status is unhealthy.", unset: "/ping" },
      { name: "lb.maxConcurrency", title: "Requests of a worker", kind: "number", text: "That one worker serves concurrently. 0: no limit.", unset: 0 },
      { name: "lb.queueMax", title: "Most waiting requests", kind: "number", text: "Further ones are refused.", unset: 100 },
      { name: "lb.queueTimeoutMs", title: "Longest wait", kind: "ms", text: "Of a request for a worker.", unset: 120000 },
      { name: "lb.requestTimeoutMs", title: "Longest time to respond", kind: "ms", text: "From the last byte of a request to the head of its response.", unset: 330000 },
      { name: "lb.idleTimeoutMs", title: "Longest pause", kind: "ms", text: "Within a response or an upgraded connection. 0: no limit.", unset: 60000 },
      { name: "lb.drainTimeoutMs", title: "Drain time", kind: "ms", text: "Requests of a drained worker may go on for this time.", unset: 330000 },
      { name: "lb.bodyBytesMax", title: "Largest body that waits", kind: "bytes", text: "A request with a larger one is refused if it has to wait for a worker. In bytes.", unset: 30000000 },
      { name: "lb.public", title: "Requests need", kind: "flag", words: ["no key", "a key"], text: "Without a key, every client of this server reaches the workers.", unset: false },
      { name: "lb.passAuthorization", title: "Authorization header", kind: "flag", words: ["passed to workers", "removed"], text: "Of requests. If it is passed, workers see the keys of clients.", unset: false },
    ],
  },
  {
    title: "Jobs",
    of: "QUEUE",
    settings: [
      { name: "executionTimeoutMs", title: "Longest run", kind: "ms", text: "A job that runs longer has timed out." },
      { name: "maxRetries", title: "Automatic retries", kind: "number", text: "Of one job." },
      { name: "retryOn", title: "Retry after", kind: "words", words: ["workerLost", "handlerError"], text: "What causes a retry." },
      { name: "maxConcurrency", title: "Jobs of a worker", kind: "number", text: "That one worker runs concurrently." },
      { name: "maxQueueLength", title: "Longest queue", kind: "number", text: "Further jobs are refused.", orNone: "the server's limit" },
      { name: "durability", title: "Durability", kind: "word", words: ["synced", "buffered"], text: "buffered: a power failure can lose the last 100 ms." },
      { name: "streamShape", title: "Shape of streams", kind: "word", words: ["array", "object"], text: "What /stream answers: chunks alone, or with the status.", orNone: "the server's setting" },
    ],
  },
  {
    title: "Results and webhooks",
    of: "QUEUE",
    settings: [
      { name: "resultRetentionMs", title: "Results are kept", kind: "ms", text: "Of jobs that were submitted with /run." },
      { name: "syncResultRetentionMs", title: "Results of /runsync", kind: "ms", text: "Of jobs whose client waited." },
      { name: "webhook", title: "Webhook", kind: "text", text: "Called for jobs that name none.", orNone: "none" },
      { name: "webhookEvents", title: "Events", kind: "words", words: EVENTS, text: "That webhooks are called for." },
    ],
  },
  {
    title: "Objectives",
    of: "QUEUE",
    settings: [
      { name: "slo.delayMs", title: "Starts within", kind: "ms", text: "A job that waits longer started late.", orNone: "no objective for the delay" },
      { name: "slo.delayTarget", title: "Share of jobs that start in time", kind: "share", text: "In percent.", orNone: "the default, if another objective is set" },
      { name: "slo.successTarget", title: "Share of jobs that complete", kind: "share", text: "In percent, of those that end. Cancelled ones do not count.", orNone: "the default, if another objective is set" },
      { name: "slo.windowDays", title: "Window in days", kind: "number", text: "At most 30.", orNone: "the default, if another objective is set" },
    ],
  },
  {
    title: "Models and examples",
    of: "QUEUE",
    settings: [
      { name: "models", title: "Models", kind: "texts", text: "The names that openai clients send, between commas." },
      { name: "keepFailureTexts", title: "Messages of failures", kind: "flag", words: ["stored", "not stored"], text: "A message can have a part of a job's input. Types and places are always stored." },
      { name: "example", title: "Example", kind: "json", text: "A request to try the endpoint with, such as {\"input\": {\"prompt\": \"a harbour\"}}.", orNone: "none" },
      { name: "inputSchema", title: "Schema of the input", kind: "json", text: "The JSON Schema that the playground makes a form of. Requests are not checked against it.", orNone: "none" },
    ],
  },
  {
    title: "Names",
    settings: [
      { name: "name", title: "Name", kind: "text", text: "For people.", unset: "its id" },
      { name: "slug", title: "Slug", kind: "text", text: "A second address. A change breaks clients that use it.", orNone: "none" },
    ],
  },
];

/** @typedef {{id: string, name: string}} Named a resource that settings choose from */

/**
 * The setting as it is for one endpoint: what it means there, and the resources that there are to choose from.
 * @param {Setting} setting
 * @param {Record<string, any>} record the endpoint
 * @param {{templates?: Named[], volumes?: Named[]}} known
 * @returns {Setting}
 */
export function fitted(setting, record, { templates, volumes }) {
  if (setting.name === "templateId") return choosing(setting, templates, [record.templateId]);
  if (setting.name === "networkVolumeId") return choosing(setting, volumes, record.networkVolumeId ? [record.networkVolumeId] : []);
  if (setting.name === "networkVolumeIds") return choosing(setting, volumes, record.networkVolumeIds ?? []);
  return record.type === "LB" && setting.forwarded ? { ...setting, text: setting.forwarded } : setting;
}

/**
 * The setting with these resources as its words. Who may not list them sees the ids of those that are chosen.
 * @param {Setting} setting @param {Named[] | undefined} all undefined while they are not read @param {string[]} chosen
 * @returns {Setting}
 */
function choosing(setting, all, chosen) {
  const labels = /** @type {Record<string, string>} */ (Object.fromEntries((all ?? []).map(({ id, name }) => [id, name])));
  return { ...setting, words: [...new Set([...chosen, ...Object.keys(labels)])], labels, none: all ? "There is none to choose." : "None is chosen." };
}

/** The groups of one endpoint's settings. @param {{type?: string}} endpoint */
export const groupsOf = (endpoint) => GROUPS.filter(({ of }) => of === undefined || of === (endpoint.type ?? "QUEUE"));

export const SETTINGS = GROUPS.flatMap(({ settings }) => settings);
