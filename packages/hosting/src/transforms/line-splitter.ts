import type { RecordSplitter, SourceRecord } from "./split-record.ts";
import { transformClientError } from "./transform-error.ts";

const newline = 0x0a;
const carriageReturn = 0x0d;

/** Splits records at line feeds. The last record may lack a line feed. Blank lines are ignored. */
export class LineSplitter implements RecordSplitter {
  readonly #recordBytesMax: number;
  /** Chunks of the current line. */
  #chunks: Buffer[] = [];
  #byteLength = 0;
  #lineCount = 0;

  constructor(recordBytesMax: number) {
    this.#recordBytesMax = recordBytesMax;
  }

  push(chunk: Buffer): readonly SourceRecord[] {
    const records: SourceRecord[] = [];
    let from = 0;
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      this.#keep(chunk.subarray(from, at + 1));
      this.#close(records);
      from = at + 1;
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from));
    return records;
  }

  end(): readonly SourceRecord[] {
    const records: SourceRecord[] = [];
    if (this.#byteLength > 0) this.#close(records);
    return records;
  }

  #keep(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#byteLength += chunk.length;
    if (this.#byteLength > this.#recordBytesMax + 2) {
      throw transformClientError(
        `line ${this.#lineCount + 1} is longer than the ${this.#recordBytesMax} bytes of a payload`,
      );
    }
  }

  #close(records: SourceRecord[]): void {
    const [only] = this.#chunks;
    const framed =
      this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks, this.#byteLength);
    this.#chunks = [];
    this.#byteLength = 0;
    this.#lineCount += 1;
    const content = stripLineEnd(framed);
    if (content.length > 0) records.push({ framed, content });
  }
}

export function stripLineEnd(line: Buffer): Buffer {
  let end = line.length;
  if (line[end - 1] === newline) end -= 1;
  if (end < line.length && line[end - 1] === carriageReturn) end -= 1;
  return line.subarray(0, end);
}
