import type { Clock } from "../base/index.ts";

export interface OutputLimits {
  /** Longer lines are cut there. */
  readonly lineBytesMax: number;
  /** Lines kept for error texts. */
  readonly tailLines: number;
  /** Lines forwarded per second; what comes faster is counted and said, not forwarded. The tail sees everything. */
  readonly linesPerSecondMax: number;
}

export const defaultOutputLimits: OutputLimits = { lineBytesMax: 4096, tailLines: 20, linesPerSecondMax: 200 };

/** Cuts what a process prints into lines, whatever it prints: bounded in length, rate and memory. */
export class OutputLines {
  readonly #limits: OutputLimits;
  readonly #clock: Clock;
  readonly #forward: (line: string) => void;
  readonly #tail: string[] = [];
  #partial: Buffer = Buffer.alloc(0);
  #cutBytes = 0;
  #windowStartNs = 0;
  #windowLines = 0;
  #droppedLines = 0;

  constructor(clock: Clock, forward: (line: string) => void, limits: OutputLimits = defaultOutputLimits) {
    this.#clock = clock;
    this.#forward = forward;
    this.#limits = limits;
    this.#windowStartNs = clock.monotonicNs();
  }

  /** The last lines, oldest first; an unfinished one is part of them. */
  get tail(): readonly string[] {
    return this.#partial.length === 0 ? [...this.#tail] : [...this.#tail, this.#partial.toString("utf8")];
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = 0;
    for (;;) {
      const newline = bytes.indexOf(10, start);
      if (newline === -1) break;
      this.#append(bytes.subarray(start, newline));
      this.#endLine();
      start = newline + 1;
    }
    this.#append(bytes.subarray(start));
  }

  /** The process closed its output: what it left unfinished is a line, and what was dropped is said. */
  end(): void {
    if (this.#partial.length > 0) this.#endLine();
    this.#sayDropped();
  }

  #append(piece: Buffer): void {
    const room = this.#limits.lineBytesMax - this.#partial.length;
    const taken = piece.subarray(0, Math.max(0, room));
    if (taken.length > 0) this.#partial = Buffer.concat([this.#partial, taken]);
    this.#cutBytes += piece.length - taken.length;
  }

  #endLine(): void {
    const cut = this.#cutBytes > 0 ? ` ... (${this.#cutBytes} bytes cut)` : "";
    const line = this.#partial.toString("utf8").trimEnd() + cut;
    this.#partial = Buffer.alloc(0);
    this.#cutBytes = 0;
    if (line === "") return;
    this.#tail.push(line);
    if (this.#tail.length > this.#limits.tailLines) this.#tail.shift();
    const nowNs = this.#clock.monotonicNs();
    if (nowNs - this.#windowStartNs >= 1e9) {
      this.#sayDropped();
      this.#windowStartNs = nowNs;
      this.#windowLines = 0;
    }
    if (++this.#windowLines <= this.#limits.linesPerSecondMax) this.#forward(line);
    else this.#droppedLines++;
  }

  #sayDropped(): void {
    if (this.#droppedLines === 0) return;
    const droppedLines = this.#droppedLines;
    this.#droppedLines = 0;
    this.#forward(`... ${droppedLines} lines not shown: more than ${this.#limits.linesPerSecondMax} lines per second`);
  }
}
