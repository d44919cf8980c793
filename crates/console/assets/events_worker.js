// The worker that all tabs of this browser share: it holds the one stream of events, and the turns of long responses.
//
// Browsers open six connections to a server at most. With a stream for each tab, the seventh tab would wait for ever.
import { EventStream } from "./event_stream.js";

/** Long responses of all tabs together, beside the stream of events. */
const TURNS_MAX = 3;

/** The tokens that tabs have joined with, the newest last: a tab that was hidden while another key signed in has an old one. @type {Set<string>} */
const tokens = new Set();
/** @type {Set<MessagePort>} */
const ports = new Set();
/** The tabs that have or want a turn, by the numbers of their responses: the last one wanted it last. @type {{port: MessagePort, number: number, isOn: boolean}[]} */
let turns = [];

const tell = (/** @type {unknown} */ message) => ports.forEach((port) => port.postMessage(message));

const stream = new EventStream(
  (name, data) => tell({ name, data }),
  (state) => tell({ state }),
);

/** The newest wishes are on; a tab whose response is no longer on closes it. */
function arrange() {
  turns.forEach((turn, at) => {
    const isOn = at >= turns.length - TURNS_MAX;
    if (isOn === turn.isOn) return;
    turn.isOn = isOn;
    turn.port.postMessage({ turn: turn.number, isOn });
  });
}

/** @param {MessagePort} port @param {any} message */
function accept(port, message) {
  if (message.join) {
    ports.add(port);
    tokens.add(message.join.token);
    stream.start(message.join.base, [...tokens].at(-1) ?? "");
    port.postMessage({ joined: stream.state });
  } else if (message.leave || message.pause) {
    ports.delete(port);
    if (message.leave) turns = turns.filter((turn) => turn.port !== port);
    if (ports.size === 0) stream.stop();
  } else if (message.want !== undefined) {
    const turn = { port, number: message.want, isOn: false };
    if (message.isLow) turns.unshift(turn);
    else turns.push(turn);
  } else if (message.give !== undefined) {
    turns = turns.filter((turn) => turn.port !== port || turn.number !== message.give);
  }
  arrange();
}

/** @type {any} */ (self).onconnect = (/** @type {MessageEvent} */ { ports: [port] }) => {
  port.onmessage = ({ data }) => accept(port, data);
};
