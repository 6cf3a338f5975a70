import type { JsonScanner } from "./json-scanner.ts";

/** Shorter arrays and objects are stepped over again sooner than their ends are looked up. */
const notedBytesMin = 16 * 1024;

interface Open {
  readonly startAt: number;
  readonly close: number;
  /** Elements or members so far. */
  count: number;
}

/**
 * Steps over one JSON value, of any size, in pieces, and tells the scanner where its long arrays and objects end, and how much is in them: whoever walks the same
 * text with the same scanner afterwards steps over each of them at once. Checks what `JsonScanner.skipValue` checks.
 */
export class JsonWalk {
  readonly #scanner: JsonScanner;
  readonly #startAt: number;
  readonly #open: Open[] = [];

  /** The scanner stands at the value, and does again when the walk is over. */
  constructor(scanner: JsonScanner) {
    this.#scanner = scanner;
    this.#startAt = scanner.at;
  }

  /**
   * Goes on for about `textBytes`, further only by the rest of a string; true when the value has ended. Throws as `skipValue` does: then
   * the scanner is of no more use.
   */
  advance(textBytes: number): boolean {
    const scanner = this.#scanner;
    // Of an empty document others say what is wrong.
    if (scanner.peek() === -1 && this.#open.length === 0) return true;
    const untilAt = scanner.at + textBytes;
    do {
      const last = this.#open.at(-1);
      if (last?.close === 0x5d) last.count += scanner.skipPlainNumbers(untilAt);
      if (scanner.at >= untilAt) return false;
      if (!this.#enter()) {
        if (this.#leave()) {
          scanner.at = this.#startAt;
          return true;
        }
      }
    } while (scanner.at < untilAt);
    return false;
  }

  /** Enters an array or object that is not empty and stands at its first value; false: the value has been stepped over. */
  #enter(): boolean {
    const scanner = this.#scanner;
    const kind = scanner.kind();
    if (kind !== "array" && kind !== "object") {
      scanner.skipValue();
      return false;
    }
    const startAt = scanner.at;
    const close = kind === "array" ? 0x5d : 0x7d;
    if (!scanner.open(close)) return false;
    this.#open.push({ startAt, close, count: 1 });
    if (close === 0x7d) scanner.key();
    return true;
  }

  /** From the end of a value to the next one; true where there is none. */
  #leave(): boolean {
    const scanner = this.#scanner;
    for (let last = this.#open.at(-1); last !== undefined; last = this.#open.at(-1)) {
      if (scanner.more(last.close)) {
        last.count++;
        if (last.close === 0x7d) scanner.key();
        return false;
      }
      this.#open.pop();
      if (scanner.at - last.startAt >= notedBytesMin) scanner.noteEnd(last.startAt, last.count);
    }
    return true;
  }
}
