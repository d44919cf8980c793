// The chat of the playground: a conversation with one of the endpoint's models, and how fast it answers.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../dom.js";
import { bodyOf, Chat, faultOf } from "../chat.js";
import { count, duration, rate, visible } from "../format.js";
import { keptOf } from "../playground_kept.js";
import { useRead } from "../store.js";
import { announce } from "./announcer.js";
import { Button } from "./button.js";
import { Alert, Card } from "./card.js";
import { CHAT_FORMS } from "./chat_forms.js";
import { CopyAs } from "./copy_as.js";
import { Field } from "./form_dialog.js";

/** @typedef {import("../chat.js").ChatSettings} ChatSettings */

const EXPLAIN_MS = 2000;
/** A reader at most this many pixels above the end follows the newest text. */
const END_PX = 40;

/** @param {{endpoint: Endpoint}} props */
export function ChatBench({ endpoint }) {
  const [kept] = useState(() => keptOf(endpoint.id));
  const [chat] = useState(() => (kept.chat ??= new Chat(endpoint.id)));
  // An answer that is not seen is not paid for: it says that it was stopped.
  useEffect(() => () => chat.stop(), [chat]);
  const [settings, setSettings] = useState(/** @type {ChatSettings} */ (kept.settings ?? { model: endpoint.models?.[0] ?? "", system: "", temperature: "", tokens: "" }));
  const [text, setText] = useState(kept.text);
  useLayoutEffect(() => void Object.assign(kept, { settings, text }), [settings, text]);
  void chat.version.value;
  const isRunning = chat.isRunning.value;
  const fault = faultOf(settings);
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const say = async () => {
    if (!text.trim() || fault || isRunning) return;
    setText("");
    await chat.say(text.trim(), settings);
    const last = chat.messages.at(-1);
    announce(last?.error ? `The answer failed: ${last.error}` : last?.note || "The answer is complete.");
    field.current?.focus();
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void say();
  };
  const next = text.trim() || chat.messages.length > 0 ? [...chat.messages, ...(text.trim() ? [{ role: /** @type {const} */ ("user"), text: text.trim() }] : [])] : [{ role: /** @type {const} */ ("user"), text: "Hello" }];
  const call = { endpoint: endpoint.slug ?? endpoint.id, input: null, body: JSON.stringify(bodyOf(next, settings)) };
  const actions = html`${chat.messages.length > 0 && html`<${Button} kind="quiet small" onClick=${() => chat.clear()}>Clear<//>`}`;
  return html`<div class="bench">
    <div class="stack bench-input"><${SettingsCard} endpoint=${endpoint} settings=${settings} fault=${fault} onSet=${setSettings} call=${call} /></div>
    <div class="stack bench-result"><${Card} title="Conversation" note="in this tab alone" flush actions=${actions}>
      <${Messages} chat=${chat} version=${chat.version.value} />
      ${isRunning && html`<${WhileWaiting} endpoint=${endpoint} message=${chat.messages.at(-1)} />`}
      <div class="chat-say">
        <label class="offscreen" for="chat-text">Message</label>
        <textarea id="chat-text" ref=${field} rows="3" placeholder="Say something" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} onKeyDown=${press}></textarea>
        <div class="play-acts">${isRunning ? html`<${Button} icon="close" onClick=${() => chat.stop()}>Stop<//>` : html`<${Button} kind="primary" icon="play" disabled=${!text.trim() || fault !== ""} why=${fault || "There is nothing to send."} onClick=${say}>Send<//>`}<span class="dim">Enter sends, Shift Enter begins a line.</span></div>
      </div>
    <//></div>
  </div>`;
}

/** @param {{endpoint: Endpoint, settings: ChatSettings, fault: string, onSet: (settings: ChatSettings) => void, call: import("./copy_as.js").Call}} props */
function SettingsCard({ endpoint, settings, fault, onSet, call }) {
  const models = /** @type {string[]} */ (endpoint.models ?? []);
  const set = (/** @type {keyof ChatSettings} */ name) => (/** @type {string} */ value) => onSet({ ...settings, [name]: value });
  return html`<${Card} title="Model"><div class="form">
    ${models.length > 0
      ? html`<div class="field"><label for="chat-model">Model</label><select id="chat-model" value=${settings.model} onChange=${(/** @type {any} */ event) => set("model")(event.target.value)}>${models.map((model) => html`<option key=${model} value=${model}>${model}</option>`)}</select></div>`
      : html`<${Field} id="chat-model" label="Model" value=${settings.model} onInput=${set("model")} help=${endpoint.models && html`The endpoint has no <span class="mono">models</span>: the worker gets this name.`} />`}
    <div class="field"><label for="chat-system">System text</label><textarea id="chat-system" rows="4" placeholder="none" value=${settings.system} onInput=${(/** @type {any} */ event) => set("system")(event.target.value)}></textarea></div>
    <div class="play-policy">
      <${Field} id="chat-temperature" label="Temperature" inputmode="decimal" placeholder="the model's" value=${settings.temperature} onInput=${set("temperature")} />
      <${Field} id="chat-tokens" label="Most tokens" inputmode="numeric" placeholder="the model's" value=${settings.tokens} onInput=${set("tokens")} />
    </div>
    ${fault && html`<p class="field-error" role="alert">${fault}</p>`}
    <div class="play-acts"><span class="grow"></span><${CopyAs} call=${call} label="Copy the next request as" forms=${CHAT_FORMS} /></div>
  </div><//>`;
}

/** @param {{chat: Chat, version: number}} props */
function Messages({ chat, version }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [version]);
  const scrolled = () => {
    const node = box.current;
    if (node) isAtEnd.current = node.scrollTop + node.clientHeight > node.scrollHeight - END_PX;
  };
  if (chat.messages.length === 0) return html`<p class="chat-none dim">A request for each message, with all that was said before. It is a job, as every request of OpenAI's clients is.</p>`;
  return html`<div class="chat-messages" ref=${box} tabindex="0" role="log" aria-label="Messages" aria-live="off" onScroll=${scrolled}>
    ${chat.messages.map((message, at) => html`<${One} key=${at} message=${message} isLast=${at === chat.messages.length - 1} isRunning=${chat.isRunning.value} />`)}
  </div>`;
}

/** @param {{message: import("../chat.js").Message, isLast: boolean, isRunning: boolean}} props */
function One({ message, isLast, isRunning }) {
  const { role, text, thought, note, error, figures } = message;
  const isComing = isLast && isRunning;
  return html`<article class=${`chat-message ${role}`} aria-label=${role === "user" ? "You" : "The model"}>
    ${thought && html`<details><summary class="dim">Its thoughts</summary><p class="chat-text dim">${visible(thought)}</p></details>`}
    ${(text || isComing) && html`<p class="chat-text">${visible(text)}${isComing && html`<span class="caret"></span>`}</p>`}
    ${error && html`<p class="field-error" role="alert">${visible(error)}</p>`}
    ${(figures || note) && html`<p class="chat-figures dim">${[note, figures && figuresOf(figures)].filter(Boolean).join(" ")}</p>`}
  </article>`;
}

/** @param {import("../chat.js").Figures} figures */
function figuresOf({ firstMs, tokens, isCounted, perSecond }) {
  if (firstMs === null) return "";
  const number = `${isCounted ? "" : "about "}${count(tokens)} ${tokens === 1 ? "token" : "tokens"}`;
  return `First token after ${duration(firstMs)}, ${number}${perSecond === null ? "" : `, ${rate(perSecond)} a second`}.`;
}

/** Why jobs of the endpoint wait, while no token has come. The message's own job is not known: others can wait while a worker has it. @param {{endpoint: Endpoint, message: import("../chat.js").Message | undefined}} props */
function WhileWaiting({ endpoint, message }) {
  const isWaiting = message !== undefined && message.text === "" && message.thought === "";
  const cause = useRead(isWaiting ? `/v2/${encodeURIComponent(endpoint.id)}/explain` : null, EXPLAIN_MS).data?.cause;
  if (!isWaiting || !cause || cause.code === "not_waiting") return null;
  return html`<${Alert} tone=${cause.blocking ? "bad" : "warn"} icon=${cause.blocking ? "warn" : "queued"} title=${cause.title} level=${3}><p>${cause.text}</p><p class="dim">This is of the endpoint's queue. A worker can have your message already.</p><//>`;
}
