// A job as it lives: its record and its chunks, over one response of events that is read to the job's end.
import { signal } from "./dom.js";
import * as api from "./api.js";
import { fieldsOf, partsOf } from "./event_stream.js";
import { jobOf, READ_BYTES_MAX } from "./job_record.js";
import { member, parse } from "./json_text.js";
import { takeTurn } from "./live.js";

/** @typedef {{offset: number, at: number, isSeen: boolean, text: string, bytes?: number}} Chunk `text` is JSON of the output; `at` is when this browser got it, `isSeen` whether it saw it come */

const AGAIN_MS = 1500;
/** Chunks that come earlier than this after the response began were stored before. */
const STORED_MS = 300;
/** After this time, a page that is seen draws a frame before more chunks are read, in ms. */
const PART_MS = 8;
/** The shortest time between two renders of chunks, in ms: a frame of fast text is not read, and costs its layout and paint. */
const RENDER_MS = 33;
const SPEED_MS = 5000;
/** A shorter stream has no rate. */
export const SPAN_MS_MIN = 500;

/** Follows one job until `close`. */
export class JobFollow {
  /** @param {string} endpoint @param {string} job */
  constructor(endpoint, job) {
    this.path = `/v2/${encodeURIComponent(endpoint)}/stream/${encodeURIComponent(job)}?offset=0&outputBytesMax=${READ_BYTES_MAX}`;
    /** The job's record, as JSON text and parsed. @type {import("./vendor/signals.js").Signal<{text: string, job: Job} | null>} */
    this.record = signal(/** @type {{text: string, job: Job} | null} */ (null));
    /** @type {Chunk[]} */
    this.chunks = [];
    /** Changes with new chunks, at most once in RENDER_MS. */
    this.version = signal(0);
    /** @type {import("./vendor/signals.js").Signal<api.ApiError | null>} */
    this.error = signal(/** @type {api.ApiError | null} */ (null));
    /** When this browser saw progress values come. @type {number[]} */
    this.progressAt = [];
    /** When the response began: chunks of the first moments were stored before. */
    this.openedAt = 0;
    /** When the present response began: it starts with what was stored meanwhile. */
    this.beganAt = 0;
    /** Whether other tabs have the turns of long responses: the record is as old as the last event. */
    this.isPaused = signal(false);
    /** When the response ended for good, in ms; 0 while it is read. */
    this.endedAt = 0;
    this.stop = new AbortController();
    this.giveBack = () => {};
    this.timer = 0;
    /** When `version` changed last, in ms. */
    this.renderedAt = 0;
    this.last = "";
  }

  close() {
    this.stop.abort();
    this.giveBack();
    clearTimeout(this.timer);
  }

  /** Reads all of it anew: after its end, the job was retried. */
  again() {
    [this.chunks, this.progressAt, this.last] = [[], [], ""];
    [this.openedAt, this.endedAt] = [0, 0];
    this.version.value += 1;
    this.run();
  }

  /** Whether the rest of the response could not be read: the record stays as it is. */
  isCut = () => this.endedAt > 0 && this.error.value !== null;

  /** Reads to the end while this tab has a turn. */
  run() {
    this.giveBack = takeTurn((isOn) => {
      this.stop.abort();
      this.isPaused.value = !isOn;
      if (!isOn) return;
      this.stop = new AbortController();
      void this.read();
    });
  }

  /** Reads to the end, going on where an interrupted response ended. */
  async read() {
    const { signal: stop } = this.stop;
    while (!stop.aborted) {
      try {
        if (await this.readOnce(stop)) {
          this.endedAt = Date.now();
          return this.giveBack();
        }
      } catch (error) {
        if (stop.aborted) return;
        this.error.value = error instanceof api.ApiError ? error : new api.ApiError(String(error));
        if (this.error.value.status >= 400 && this.error.value.status < 500 && this.error.value.status !== 429) return;
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  /** When the first chunk came, if this browser saw it come. */
  firstAt() {
    const first = this.chunks[0];
    return first && first.at - this.openedAt > STORED_MS ? first.at : null;
  }

  /** Chunks a second over the last 5 s; null while too few came. */
  speed() {
    const last = this.chunks.at(-1)?.at ?? 0;
    const first = this.firstSince(Math.max(last - SPEED_MS, this.openedAt + STORED_MS));
    const span = last - (this.chunks[first]?.at ?? last);
    return span > SPAN_MS_MIN ? ((this.chunks.length - first - 1) * 1000) / span : null;
  }

  /** The place of the first chunk that came at this time or later. @param {number} time */
  firstSince(time) {
    let [low, high] = [0, this.chunks.length];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.chunks[middle].at < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** One response; answers whether the job has ended. @param {AbortSignal} stop */
  async readOnce(stop) {
    /** @type {Record<string, string>} */
    const headers = this.last ? { "Last-Event-ID": this.last } : {};
    const answer = await api.open(this.path, { signal: stop, headers });
    this.error.value = null;
    this.beganAt = Date.now();
    this.openedAt ||= this.beganAt;
    let isEnded = false;
    let began = performance.now();
    for await (const events of partsOf(answer)) {
      for (const event of events) {
        if (!document.hidden && performance.now() - began > PART_MS) {
          await new Promise((resolve) => setTimeout(resolve));
          began = performance.now();
        }
        if (stop.aborted) return false;
        isEnded = this.accept(event) || isEnded;
      }
    }
    return isEnded;
  }

  /** @param {string} event one event of the response @returns {boolean} whether it is the last */
  accept(event) {
    const fields = fieldsOf(event);
    if (fields.data === undefined) return false;
    if (fields.event === "status" || fields.event === "done") this.setRecord(fields.data);
    else if (fields.event === "error") this.error.value = new api.ApiError(api.sentence(JSON.parse(fields.data).error));
    else if (fields.id !== undefined) this.addChunk(fields);
    return fields.event === "done" || fields.event === "error";
  }

  /** @param {string} text */
  setRecord(text) {
    const job = jobOf(text);
    const before = this.record.peek()?.job;
    // The chunks of a lost attempt are no part of the result.
    if (before && (job.retries ?? 0) > (before.retries ?? 0)) [this.chunks, this.progressAt] = [[], []];
    if (before?.status === "IN_PROGRESS" && job.status === "IN_PROGRESS") this.progressAt.push(Date.now());
    this.record.value = { text, job };
  }

  /** @param {Record<string, string>} fields */
  addChunk(fields) {
    this.last = fields.id;
    const at = Date.now();
    this.chunks.push({ offset: Number(fields.id), at, isSeen: at - this.beganAt > STORED_MS, text: fields.data });
    this.timer ||= window.setTimeout(() => (document.hidden ? this.render() : requestAnimationFrame(() => this.render())), Math.max(0, this.renderedAt + RENDER_MS - at));
  }

  /** Shows the chunks that came since the last render. */
  render() {
    this.timer = 0;
    this.renderedAt = Date.now();
    this.version.value += 1;
  }
}

/** The text in a chunk, or null if it holds none. @param {Chunk} chunk @returns {string | null} */
export function textOf(chunk) {
  const output = JSON.parse(chunk.text).output;
  if (typeof output === "string") return output;
  const text = output?.text ?? output?.content ?? output?.choices?.[0]?.delta?.content ?? output?.choices?.[0]?.text;
  if (typeof text === "string") return text;
  return Array.isArray(text) && text.every((part) => typeof part === "string") ? text.join("") : null;
}

/** The JSON text of a chunk's output, as it was written. @param {Chunk} chunk */
export const outputOf = (chunk) => member(parse(chunk.text), "output");

/** The metrics of a chunk, or null. @param {Chunk} chunk */
export const metricsOf = (chunk) => (chunk.text.includes('"metrics"') ? member(parse(chunk.text), "metrics") : null);
