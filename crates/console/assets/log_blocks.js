// Up to 200 000 lines in blocks, so that a page draws those that are seen and leaves the others alone.
import { joined } from "./log_text.js";

/** @typedef {import("./log_text.js").LogLine} LogLine */
/**
 * @typedef {{id: number, lines: LogLine[], groups: ReturnType<typeof joined> | null, pixels: number}} Block
 *   `groups` are the lines as they are drawn, null until they are asked for; `pixels` is the height that was measured, 0 before
 */

/** The lines of one block; a traceback at its end may make it twice as long. */
const BLOCK = 200;
/** A line that was printed in parts is among the last lines of this number of blocks. */
const RECENT_BLOCKS = 2;

export class LogBlocks {
  constructor() {
    /** In the order of time. @type {Block[]} */
    this.blocks = [];
    this.count = 0;
    this.lastId = 0;
  }

  /** All lines. */
  lines = () => this.blocks.flatMap(({ lines }) => lines);

  /** The first line. */
  first = () => this.blocks[0]?.lines[0];

  /** Adds the lines after all others. A line that is among the last ones is replaced. @param {LogLine[]} lines */
  append(lines) {
    const recent = this.recent();
    for (const line of lines) {
      const known = recent.get(line.id);
      if (known) {
        known.lines[known.lines.findIndex(({ id }) => id === line.id)] = line;
        known.groups = null;
      } else {
        recent.set(line.id, this.push(line));
      }
    }
  }

  /** The last lines by id, with the block of each. */
  recent() {
    const recent = /** @type {Map<string, Block>} */ (new Map());
    for (const block of this.blocks.slice(-RECENT_BLOCKS)) for (const { id } of block.lines) recent.set(id, block);
    return recent;
  }

  /** @param {LogLine} line */
  push(line) {
    let block = this.blocks.at(-1);
    if (!block || isFull(block, line)) {
      this.lastId += 1;
      block = { id: this.lastId, lines: [], groups: null, pixels: 0 };
      this.blocks.push(block);
    }
    block.lines.push(line);
    block.groups = null;
    this.count += 1;
    return block;
  }

  /** Adds the lines before all others. @param {LogLine[]} lines */
  prepend(lines) {
    const older = new LogBlocks();
    older.lastId = this.lastId;
    for (const line of lines) older.push(line);
    const [last, first] = [older.blocks.at(-1), this.blocks[0]];
    if (last && first && continues(last, first.lines[0])) {
      // A traceback is drawn as a whole.
      older.blocks.pop();
      [first.lines, first.groups] = [[...last.lines, ...first.lines], null];
    }
    this.blocks = [...older.blocks, ...this.blocks];
    this.count += lines.length;
    this.lastId = older.lastId;
  }

  /** Drops the oldest lines beyond this number, by blocks. @param {number} most */
  dropOldest(most) {
    let dropped = 0;
    while (this.count > most) {
      this.count -= this.blocks[dropped].lines.length;
      dropped += 1;
    }
    this.blocks = this.blocks.slice(dropped);
    return dropped > 0;
  }

  /** Drops the newest lines beyond this number, by blocks. @param {number} most */
  dropNewest(most) {
    const before = this.blocks.length;
    while (this.count > most) this.count -= this.blocks.pop()?.lines.length ?? 0;
    return this.blocks.length < before;
  }
}

/** The lines of a block as they are drawn. @param {Block} block */
export function groupsOf(block) {
  block.groups ??= joined(block.lines);
  return block.groups;
}

/** Whether a line after others is the first one of a group. @param {LogLine[]} lines @param {LogLine} line */
const leads = (lines, line) => joined([...lines, line]).at(-1)?.line === line;

/** Whether a line begins another block. @param {Block} block @param {LogLine} line */
const isFull = ({ lines }, line) => lines.length >= 2 * BLOCK || (lines.length >= BLOCK && leads(lines.slice(-BLOCK / 2), line));

/** Whether a line belongs to a traceback at the end of a block. @param {Block} block @param {LogLine} line */
const continues = (block, line) => !leads(block.lines, line);
