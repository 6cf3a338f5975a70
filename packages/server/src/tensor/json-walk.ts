import type { JsonScanner } from "./json-scanner.ts";

/** The ends of shorter arrays and objects are not recorded: skipping them again is faster than looking the end up. */
const notedBytesMin = 16 * 1024;

interface Open {
  readonly startAt: number;
  readonly close: number;
  /** Number of elements or members walked so far. */
  count: number;
}

/**
 * Skips one JSON value of any size in chunks, with the checks of `JsonScanner.skipValue`. Records the ends and sizes of its long arrays and
 * objects in the scanner. A later walk of the same text skips each of them in one step.
 */
export class JsonWalk {
  readonly #scanner: JsonScanner;
  readonly #startAt: number;
  readonly #open: Open[] = [];

  /** `scanner` must be at the start of the value. After the walk it is at the start again. */
  constructor(scanner: JsonScanner) {
    this.#scanner = scanner;
    this.#startAt = scanner.at;
  }

  /**
   * Walks about `textBytes` more, up to the end of a string; returns true when the value has ended. Throws as `skipValue` does; the scanner
   * is unusable after that.
   */
  advance(textBytes: number): boolean {
    const scanner = this.#scanner;
    // An empty document is not an error here; the caller reports it.
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

  /** Enters an array or object and moves to its first value. Returns false when the value was skipped instead. */
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

  /** Moves from the end of a value to the next one; returns true when there is none. */
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
