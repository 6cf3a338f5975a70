import type { YieldOptions } from "@galatea/base";

/** Of rows that are looked into in one turn: 0.5 ms of JSON that is joined and printed again. */
const turnBytes = 64 * 1024;

/** Rows that are made one after the other of others, which may be many: after each 64 KiB of those whoever waits for the event loop has a turn. */
export class RowsInTurns {
  readonly #of: YieldOptions;
  readonly #encoding: "utf8" | "latin1";
  readonly #pieces: Buffer[] = [];
  #text = "";
  #readBytes = 0;

  /** `latin1`: a character of a row is a byte, whatever that means. */
  constructor(of: YieldOptions, encoding: "utf8" | "latin1") {
    this.#of = of;
    this.#encoding = encoding;
  }

  /** Whether it is others' turn: then `next` is to be awaited before the next row. */
  add(row: string, readBytes: number): boolean {
    this.#text += row;
    this.#readBytes += readBytes;
    return this.#readBytes >= turnBytes;
  }

  async next(): Promise<void> {
    this.#pieces.push(Buffer.from(this.#text, this.#encoding));
    this.#text = "";
    this.#readBytes = 0;
    await this.#of.loopQueue.next(this.#of.signal);
  }

  whole(): Buffer {
    return Buffer.concat([...this.#pieces, Buffer.from(this.#text, this.#encoding)]);
  }
}
