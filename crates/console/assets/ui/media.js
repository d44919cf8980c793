// Pictures, sound and film in a payload: only types that are known by their first bytes, never SVG or HTML.
import { html, useEffect, useState } from "../dom.js";
import { size } from "../format.js";
import { strings } from "../json_text.js";

const STRINGS_MAX = 500;
const MEDIA_MAX = 24;
/** A shorter text is no file. */
const BASE64_MIN = 64;

/** The beginnings of files, as Latin-1 text, and their types. @type {[RegExp, string][]} */
const KINDS = [
  [/^\x89PNG\r\n/, "image/png"],
  [/^\xff\xd8\xff/, "image/jpeg"],
  [/^GIF8[79]a/, "image/gif"],
  [/^RIFF[\s\S]{4}WEBP/, "image/webp"],
  [/^[\s\S]{4}ftypavif/, "image/avif"],
  [/^RIFF[\s\S]{4}WAVE/, "audio/wav"],
  [/^(ID3|\xff\xfb|\xff\xf3)/, "audio/mpeg"],
  [/^OggS/, "audio/ogg"],
  [/^fLaC/, "audio/flac"],
  [/^[\s\S]{4}ftyp/, "video/mp4"],
  [/^\x1a\x45\xdf\xa3/, "video/webm"],
];

/** @typedef {{type: string, base64: string, bytes: number}} Media */

/** The file that a text holds, or null. @param {string} text @returns {Media | null} */
function mediaOf(text) {
  const base64 = text.startsWith("data:") ? text.slice(text.indexOf(",") + 1) : text;
  if (base64.length < BASE64_MIN || !/^[A-Za-z0-9+/]{32}/.test(base64)) return null;
  const head = decoded(base64.slice(0, 32));
  const type = head === null ? undefined : KINDS.find(([beginning]) => beginning.test(head))?.[1];
  return type ? { type, base64, bytes: Math.floor((base64.length * 3) / 4) } : null;
}

/** @param {string} base64 */
function decoded(base64) {
  try {
    return atob(base64);
  } catch {
    return null;
  }
}

/** @param {import("../json_text.js").Node} node @returns {Media[]} */
export const mediaIn = (node) => /** @type {Media[]} */ (strings(node, STRINGS_MAX).map(mediaOf).filter(Boolean));

/** @param {{media: Media[]}} props */
export function MediaGrid({ media }) {
  if (media.length === 0) return null;
  const shown = media.slice(0, MEDIA_MAX);
  return html`<div class="media">${shown.map((one, at) => html`<${One} key=${at} media=${one} number=${at + 1} />`)}</div>
    ${shown.length < media.length && html`<p class="dim">${`The first ${MEDIA_MAX} of ${media.length === STRINGS_MAX ? `${STRINGS_MAX} files or more` : `${media.length} files`}. The download of the whole has the others, too.`}</p>`}`;
}

/** @param {{media: Media, number: number}} props */
function One({ media, number }) {
  const [address, setAddress] = useState("");
  const [pixels, setPixels] = useState("");
  useEffect(() => {
    const text = decoded(media.base64);
    if (text === null) return undefined;
    const made = URL.createObjectURL(new Blob([Uint8Array.from(text, (unit) => unit.charCodeAt(0))], { type: media.type }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [media.base64]);
  if (!address) return null;
  const kind = media.type.split("/")[0];
  const loaded = (/** @type {any} */ event) => setPixels(`${event.target.naturalWidth} × ${event.target.naturalHeight}, `);
  return html`<figure>
    ${kind === "image" ? html`<img src=${address} alt=${`Picture ${number}`} onLoad=${loaded} />` : kind === "audio" ? html`<audio controls src=${address}></audio>` : html`<video controls src=${address}></video>`}
    <figcaption>${media.type.split("/")[1].toUpperCase()}, ${pixels}${size(media.bytes)} · <a href=${address} download=${`${kind}-${number}.${media.type.split("/")[1]}`}>Download</a></figcaption>
  </figure>`;
}
