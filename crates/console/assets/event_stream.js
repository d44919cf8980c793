// Server-sent events of a response, and the one stream of events of this browser, which is read to its end and continued
// where it ended. Runs in a worker or in a page.

/** @typedef {"off" | "live" | "lost" | "signedOut"} StreamState */

const AGAIN_MS = 300;
const AGAIN_MAX_MS = 10000;
/** A stream that lived for longer, and was ended by the server, is begun again without a pause. */
const LIVED_MS = 1000;
/** The server sends a comment every 15 s: a stream that is silent for longer is dead. */
const SILENT_MS = 40000;

/** The server does not know the session. */
class SignedOut extends Error {}

/** The events of a response, as they come: each part has the texts of those that came together. @param {Response} answer @returns {AsyncGenerator<string[]>} */
export async function* partsOf(answer) {
  const reader = answer.body?.getReader();
  // Cheaper than a `TextDecoderStream`, which has two more queues.
  const decoder = new TextDecoder();
  let rest = "";
  while (reader) {
    const { value, done } = await reader.read();
    if (done) return;
    const text = decoder.decode(value, { stream: true });
    rest += text;
    // A large event is not looked through again with each of its parts.
    const events = text.includes("\n") ? rest.split("\n\n") : [rest];
    rest = events.pop() ?? "";
    yield events;
  }
}

/** The fields of an event, such as `event`, `id` and `data`. @param {string} event @returns {Record<string, string>} */
export function fieldsOf(event) {
  const fields = /** @type {Record<string, string>} */ ({});
  for (const line of event.split("\n")) {
    const at = line.indexOf(":");
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 1).trimStart();
  }
  return fields;
}

/** Reads `/v1/events` until `stop`. */
export class EventStream {
  /**
   * @param {(name: string, data: string) => void} onEvent an event, with its data as JSON text
   * @param {(state: StreamState) => void} onState the state, whenever it changes, and again with each part of the stream
   */
  constructor(onEvent, onState) {
    this.onEvent = onEvent;
    this.onState = onState;
    /** @type {StreamState} */
    this.state = "off";
    this.base = "";
    this.token = "";
    this.last = "";
    /** @type {AbortController | null} */
    this.running = null;
  }

  /** Begins, or goes on with another session from the next connection on. @param {string} base @param {string} token */
  start(base, token) {
    this.base = base;
    this.token = token;
    if (!this.running) void this.run();
  }

  stop() {
    this.running?.abort();
    this.running = null;
    this.set("off");
  }

  /** @param {StreamState} state */
  set(state) {
    this.state = state;
    this.onState(state);
  }

  async run() {
    const running = new AbortController();
    this.running = running;
    let wait = AGAIN_MS;
    while (!running.signal.aborted) {
      let began = Date.now();
      try {
        await this.readOnce(running.signal, () => (wait = AGAIN_MS));
      } catch (error) {
        if (running.signal.aborted) return;
        if (error instanceof SignedOut) {
          this.running = null;
          this.last = "";
          return this.set("signedOut");
        }
        began = Infinity;
      }
      if (running.signal.aborted) return;
      this.set("lost");
      // The server ends the stream of a key that may read less now.
      if (Date.now() - began > LIVED_MS) continue;
      await new Promise((resolve) => setTimeout(resolve, wait * (0.75 + Math.random() / 2)));
      wait = Math.min(wait * 2, AGAIN_MAX_MS);
    }
  }

  /** One response. @param {AbortSignal} stop @param {() => void} onBegun */
  async readOnce(stop, onBegun) {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENT_MS);
    try {
      /** @type {Record<string, string>} */
      const headers = { Accept: "text/event-stream", "X-Longshore-Console": this.token };
      if (this.last) headers["Last-Event-ID"] = this.last;
      const signal = AbortSignal.any([stop, silence.signal]);
      const answer = await fetch(`${this.base}/v1/events`, { headers, signal, credentials: "same-origin", cache: "no-store" });
      if (answer.status === 401) throw new SignedOut();
      if (!answer.ok || !answer.body) throw new Error(String(answer.status));
      for await (const events of partsOf(answer)) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENT_MS);
        onBegun();
        this.set("live");
        for (const event of events) this.accept(fieldsOf(event));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** @param {Record<string, string>} fields of an event */
  accept(fields) {
    if (fields.id !== undefined) this.last = fields.id;
    if (fields.data !== undefined) this.onEvent(fields.event, fields.data);
  }
}
