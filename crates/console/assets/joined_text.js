// The text of a stream in pieces: a piece that is complete never changes again, so that a frame lays out the last one alone.
import { visible } from "./format.js";
import { textOf } from "./job_follow.js";

/** The characters of a piece. */
const PIECE = 3000;
/** The characters that are shown. */
const SHOWN = 400000;

/** The text of all chunks so far; each chunk is read once. */
export class JoinedText {
  constructor() {
    /** The offset of the first chunk, and the number of chunks that were read. */
    this.first = -1;
    this.count = 0;
    /** The complete pieces that are shown. @type {string[]} */
    this.pieces = [];
    /** The pieces before them, and the characters of those. */
    this.dropped = 0;
    this.cut = 0;
    /** The characters of the pieces that are shown. */
    this.shown = 0;
    this.rest = "";
  }

  /** @param {import("./job_follow.js").Chunk[]} chunks */
  read(chunks) {
    const first = chunks[0]?.offset ?? -1;
    // The chunks of a lost attempt are gone.
    if (this.first !== first || this.count > chunks.length) Object.assign(this, new JoinedText(), { first });
    if (this.count === chunks.length) return;
    this.rest += chunks.slice(this.count).map((chunk) => textOf(chunk) ?? "").join("");
    this.count = chunks.length;
    while (this.rest.length > PIECE) this.complete(endOf(this.rest));
  }

  /** Makes a piece of the first characters of the rest. @param {number} end */
  complete(end) {
    const piece = this.rest.slice(0, end);
    this.rest = this.rest.slice(end);
    this.pieces.push(visible(piece));
    this.shown += piece.length;
    while (this.shown > SHOWN) {
      const gone = this.pieces.shift()?.length ?? 0;
      this.shown -= gone;
      this.cut += gone;
      this.dropped += 1;
    }
  }
}

/** Where a piece ends: after a line, else after a word. @param {string} text longer than a piece */
function endOf(text) {
  const line = text.lastIndexOf("\n", PIECE - 1) + 1;
  return line || text.lastIndexOf(" ", PIECE - 1) + 1 || PIECE - (/[\ud800-\udbff]/.test(text[PIECE - 1]) ? 1 : 0);
}
