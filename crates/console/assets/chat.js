// A conversation with a model over the routes of OpenAI's clients: streamed, measured, and stopped when asked.
import { signal } from "./dom.js";
import * as api from "./api.js";
import { takeTurn } from "./live.js";

/**
 * @typedef {{model: string, system: string, temperature: string, tokens: string}} ChatSettings as the form has them
 * @typedef {{role: "user" | "assistant", text: string, thought: string, note: string, error: string, figures: Figures | null}} Message
 * @typedef {{firstMs: number | null, tokens: number, isCounted: boolean, perSecond: number | null}} Figures
 *   `firstMs` from the request to the first token · `isCounted`: the model said how many tokens there are; else each part counts as one
 */

/**
 * The body of the request for the next answer.
 * @param {Pick<Message, "role" | "text">[]} messages
 * @param {ChatSettings} settings
 */
export function bodyOf(messages, { model, system, temperature, tokens }) {
  // What got no answer is not said again: many models refuse two messages of the user in a row.
  const said = messages.filter(({ text }, at) => text !== "" && messages[at + 1]?.text !== "").map(({ role, text }) => ({ role, content: text }));
  return {
    model,
    messages: system.trim() ? [{ role: "system", content: system.trim() }, ...said] : said,
    ...(temperature.trim() && { temperature: Number(temperature) }),
    ...(tokens.trim() && { max_tokens: Number(tokens) }),
    stream: true,
    stream_options: { include_usage: true },
  };
}

/** What is wrong with the settings, as a sentence, or "". @param {ChatSettings} settings */
export function faultOf({ model, temperature, tokens }) {
  if (!model.trim()) return "Name the model.";
  const isWarm = temperature.trim() === "" || (Number(temperature) >= 0 && Number(temperature) <= 2);
  if (!isWarm) return "The temperature is a number from 0 to 2.";
  return tokens.trim() === "" || /^[1-9]\d*$/.test(tokens.trim()) ? "" : "The most tokens are a whole number from 1 on.";
}

/** One conversation. */
export class Chat {
  /** @param {string} endpoint its id */
  constructor(endpoint) {
    this.path = `/v2/${encodeURIComponent(endpoint)}/openai/v1/chat/completions`;
    /** @type {Message[]} */
    this.messages = [];
    /** Whether an answer is awaited or comes. */
    this.isRunning = signal(false);
    /** Changes at most once a frame, with what comes. */
    this.version = signal(0);
    this.stopped = new AbortController();
    this.frame = 0;
  }

  /** Ends the request; its job is cancelled. */
  stop() {
    this.stopped.abort();
  }

  clear() {
    this.stop();
    this.messages = [];
    this.changed();
  }

  /** Says something, and reads the answer to its end. @param {string} text @param {ChatSettings} settings */
  async say(text, settings) {
    this.messages.push({ role: "user", text, thought: "", note: "", error: "", figures: null });
    const body = bodyOf(this.messages, settings);
    /** @type {Message} */
    const answer = { role: "assistant", text: "", thought: "", note: "", error: "", figures: null };
    this.messages.push(answer);
    this.stopped = new AbortController();
    this.isRunning.value = true;
    this.changed();
    let isOvertaken = false;
    const { signal: stop } = this.stopped;
    /** @type {() => void} */
    let giveBack = () => {};
    const isOn = await new Promise((resolve) => {
      stop.addEventListener("abort", () => resolve(false));
      giveBack = takeTurn((on) => {
        resolve(on);
        isOvertaken = !on;
        if (!on) this.stop();
      });
    });
    try {
      if (isOn) await this.read(body, answer, stop);
    } catch (failed) {
      if (!stop.aborted) answer.error = api.said(failed);
    }
    giveBack();
    if (stop.aborted) answer.note = isOvertaken ? "Stopped: other tabs of this browser follow long responses." : "Stopped.";
    this.isRunning.value = false;
    this.changed();
  }

  /** @param {object} body @param {Message} answer @param {AbortSignal} stop */
  async read(body, answer, stop) {
    const began = performance.now();
    let [firstAt, lastAt, parts] = [0, 0, 0];
    const response = await api.open(this.path, { method: "POST", body, signal: stop });
    for await (const data of events(response)) {
      if (data === "[DONE]") continue;
      const event = JSON.parse(data);
      if (event.error) throw new api.ApiError(messageOf(event.error));
      const delta = event.choices?.[0]?.delta ?? {};
      const [text, thought] = [textOf(delta.content), textOf(delta.reasoning_content ?? delta.reasoning)];
      if (text || thought) {
        lastAt = performance.now();
        firstAt ||= lastAt;
        parts += 1;
      }
      answer.text += text;
      answer.thought += thought;
      if (event.choices?.[0]?.finish_reason === "length") answer.note = "It reached the most tokens.";
      const counted = event.usage?.completion_tokens;
      const tokens = counted ?? answer.figures?.tokens ?? 0;
      const isCounted = counted !== undefined || answer.figures?.isCounted === true;
      const number = isCounted ? tokens : parts;
      answer.figures = { firstMs: firstAt ? firstAt - began : null, tokens: number, isCounted, perSecond: lastAt > firstAt ? ((number - 1) * 1000) / (lastAt - firstAt) : null };
      this.soon();
    }
  }

  soon() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.changed();
    });
  }

  changed() {
    this.version.value += 1;
  }
}

/** @param {any} value */
const textOf = (value) => (typeof value === "string" ? value : "");

/** @param {any} error the server's text, or the object that the worker sent */
const messageOf = (error) => api.sentence(typeof error === "string" ? error : String(error.message ?? JSON.stringify(error)));

/** The data of each event of a response. @param {Response} response */
async function* events(response) {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (reader) {
    const { value, done } = await reader.read();
    const blocks = (rest + (value ?? "")).split(/\r?\n\r?\n/);
    // The end of the response ends the last event, too.
    rest = done ? "" : (blocks.pop() ?? "");
    for (const block of blocks) {
      const data = block.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      if (data.length > 0) yield data.join("\n");
    }
    if (done) return;
  }
}
