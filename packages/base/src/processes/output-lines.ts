import { TokenBucket, type TokenBucketLimits, type Clock } from "../core/index.ts";

export interface OutputLimits {
  /** Maximum length of a line; longer lines are split. */
  readonly lineBytesMax: number;
  /** Number of lines that are kept for error texts. */
  readonly tailLines: number;
  /**
   * Rate limit of forwarded output; null: unlimited. Each line counts `lineCostBytes` in addition to its bytes. Lines
   * above the rate are omitted, and a line with their number is forwarded instead. The tail contains every line.
   */
  readonly rate: TokenBucketLimits | null;
}

const mebibyte = 1024 * 1024;

/**
 * Default limits. A model that prints a traceback for every request stays far below the rate; a process that prints in
 * a loop exceeds it by far.
 */
export const defaultOutputLimits: OutputLimits = {
  lineBytesMax: 4096,
  tailLines: 20,
  rate: { bytesPerSecondMax: mebibyte, burstBytesMax: 4 * mebibyte },
};

/**
 * Bytes that each line counts in addition to its own bytes. Each line is an event for every consumer, so even empty
 * lines must be limited.
 */
export const lineCostBytes = 128;

/** Time for which all lines are omitted after the first omitted one, so that the forwarded output is contiguous. */
const pauseMs = 1000;

const tabByte = 9;
const newlineByte = 10;
const carriageReturnByte = 13;
const spaceByte = 32;

/** Splits the output of a process into lines, bounded in length, rate and memory. */
export class OutputLines {
  readonly #limits: OutputLimits;
  readonly #clock: Clock;
  readonly #forward: (line: string) => void;
  readonly #rate: TokenBucket | null;
  readonly #tail: string[] = [];
  #partial: Buffer = Buffer.alloc(0);
  #cutBytes = 0;
  /**
   * State while lines are omitted: the timer that ends the pause, and the number of omitted lines and bytes. Null
   * otherwise.
   */
  #pause: { readonly timer: Disposable; lineCount: number; byteCount: number } | null = null;

  constructor(clock: Clock, forward: (line: string) => void, limits: OutputLimits = defaultOutputLimits) {
    this.#clock = clock;
    this.#forward = forward;
    this.#limits = limits;
    this.#rate = limits.rate === null ? null : new TokenBucket(clock, limits.rate);
  }

  /** Returns the last lines, oldest first, including an incomplete last line. */
  get tail(): readonly string[] {
    return this.#partial.length === 0 ? [...this.#tail] : [...this.#tail, this.#partial.toString("utf8")];
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = 0;
    for (;;) {
      if (this.#pause !== null && !this.#isInLine) start = this.#leaveOutLines(bytes, start);
      const newline = bytes.indexOf(newlineByte, start);
      if (newline === -1) break;
      const segment = bytes.subarray(start, newline);
      if (this.#isInLine) {
        this.#append(segment);
        this.#endPartial();
      } else this.#line(segment.subarray(0, this.#limits.lineBytesMax), this.#cutBytesOf(segment));
      start = newline + 1;
    }
    this.#append(bytes.subarray(start));
  }

  /** Ends the output. Forwards an incomplete last line and the number of omitted lines. */
  end(): void {
    if (this.#isInLine) this.#endPartial();
    this.#endPause();
  }

  get #isInLine(): boolean {
    return this.#partial.length > 0;
  }

  #append(segment: Buffer): void {
    const capacity = this.#limits.lineBytesMax - this.#partial.length;
    const received = segment.subarray(0, Math.max(0, capacity));
    if (received.length > 0) this.#partial = Buffer.concat([this.#partial, received]);
    this.#cutBytes += segment.length - received.length;
  }

  #cutBytesOf(line: Buffer): number {
    return Math.max(0, line.length - this.#limits.lineBytesMax);
  }

  #endPartial(): void {
    const bytes = this.#partial;
    const cutBytes = this.#cutBytes;
    this.#partial = Buffer.alloc(0);
    this.#cutBytes = 0;
    this.#line(bytes, cutBytes);
  }

  #line(bytes: Buffer, cutBytes: number): void {
    if (cutBytes === 0 && isBlank(bytes, 0, bytes.length)) return;
    const line = textOf(bytes, cutBytes);
    this.#keep(line);
    if (this.#pause === null && (this.#rate?.tryConsume(bytes.length + lineCostBytes) ?? true))
      return this.#forward(line);
    this.#pause ??= { timer: this.#clock.timer(pauseMs, () => this.#endPause()), lineCount: 0, byteCount: 0 };
    this.#pause.lineCount++;
    this.#pause.byteCount += bytes.length + cutBytes;
  }

  /**
   * Skips complete lines from `start` on during a pause. Counts them, decodes only the last ones for the tail, and
   * returns the offset after them.
   */
  #leaveOutLines(bytes: Buffer, start: number): number {
    const { tailLines, lineBytesMax } = this.#limits;
    const lastStarts: number[] = [];
    let lineCount = 0;
    let byteCount = 0;
    for (let newline = bytes.indexOf(newlineByte, start); newline !== -1; newline = bytes.indexOf(newlineByte, start)) {
      if (newline - start > lineBytesMax || !isBlank(bytes, start, newline)) {
        lastStarts[lineCount++ % tailLines] = start;
        byteCount += newline - start;
      }
      start = newline + 1;
    }
    for (let index = Math.max(0, lineCount - tailLines); index < lineCount; index++) {
      const lineStart = lastStarts[index % tailLines]!;
      const line = bytes.subarray(lineStart, bytes.indexOf(newlineByte, lineStart));
      this.#keep(textOf(line.subarray(0, lineBytesMax), this.#cutBytesOf(line)));
    }
    this.#pause!.lineCount += lineCount;
    this.#pause!.byteCount += byteCount;
    return start;
  }

  #keep(line: string): void {
    this.#tail.push(line);
    if (this.#tail.length > this.#limits.tailLines) this.#tail.shift();
  }

  #endPause(): void {
    if (this.#pause === null) return;
    const { timer, lineCount, byteCount } = this.#pause;
    this.#pause = null;
    timer[Symbol.dispose]();
    this.#forward(
      `... ${lineCount} lines (${byteCount} bytes) omitted: the process writes faster than its lines are logged`,
    );
  }
}

/** Returns whether a line contains only white space. Such lines are not forwarded. */
function isBlank(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte !== spaceByte && (byte < tabByte || byte > carriageReturnByte)) return false;
  }
  return true;
}

function textOf(bytes: Buffer, cutBytes: number): string {
  return bytes.toString("utf8").trimEnd() + (cutBytes > 0 ? ` ... (${cutBytes} bytes cut)` : "");
}
