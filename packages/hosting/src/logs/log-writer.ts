import { StringDecoder } from "node:string_decoder";
import type { Clock } from "@galatea/base";
import { formatLogLine } from "./log-lines.ts";

export interface LogWriterOptions {
  readonly clock: Clock;
  /** Appends complete lines; resolves when they are in the file. */
  readonly append: (lines: string) => Promise<void>;
  readonly failed: (error: unknown) => void;
  /** Called when all text is in the file. */
  readonly idle: () => void;
  /** Longer lines are split into several events. */
  readonly lineLengthMax: number;
  /** Maximum length of text that waits for the disk. */
  readonly waitingLengthMax: number;
}

/**
 * Makes log events of a process's output. One append runs at a time; the next one has all text that arrived meanwhile.
 */
export class LogWriter {
  readonly #options: LogWriterOptions;
  readonly #decoder = new StringDecoder("utf8");
  #line = "";
  #waiting = "";
  #droppedCount = 0;
  #flushing: Promise<void> | null = null;

  constructor(options: LogWriterOptions) {
    this.#options = options;
  }

  write(chunk: Uint8Array): void {
    const lines = (this.#line + this.#decoder.write(chunk)).split("\n");
    this.#line = lines.pop() as string;
    for (const line of lines) this.#addLine(line.endsWith("\r") ? line.slice(0, -1) : line);
    while (this.#line.length > this.#options.lineLengthMax) {
      this.#add(this.#line.slice(0, this.#options.lineLengthMax));
      this.#line = this.#line.slice(this.#options.lineLengthMax);
    }
    this.#flush();
  }

  /** Resolves when the complete lines so far are in the file, or the write has failed. */
  async written(): Promise<void> {
    // Text that waits for the running append is in the next one.
    await this.#flushing;
    await this.#flushing;
  }

  /** Writes the unfinished last line, too. */
  async close(): Promise<void> {
    this.#line += this.#decoder.end();
    if (this.#line !== "") this.#addLine(this.#line);
    this.#line = "";
    this.#flush();
    while (this.#flushing !== null) await this.#flushing;
  }

  #addLine(line: string): void {
    for (let at = 0; at === 0 || at < line.length; at += this.#options.lineLengthMax) {
      this.#add(line.slice(at, at + this.#options.lineLengthMax));
    }
  }

  #add(message: string): void {
    if (this.#waiting.length + message.length > this.#options.waitingLengthMax) this.#droppedCount++;
    else this.#waiting += formatLogLine(this.#options.clock.epochMs(), message);
  }

  #flush(): void {
    if (this.#flushing !== null || this.#waiting === "") return;
    let lines = this.#waiting;
    this.#waiting = "";
    if (this.#droppedCount > 0) {
      const notice = `${this.#droppedCount} log lines were dropped: they came faster than they could be written`;
      lines += formatLogLine(this.#options.clock.epochMs(), notice);
      this.#droppedCount = 0;
    }
    this.#flushing = this.#options.append(lines).then(
      () => this.#flushed(),
      (error: unknown) => {
        this.#options.failed(error);
        this.#flushed();
      },
    );
  }

  #flushed(): void {
    this.#flushing = null;
    this.#flush();
    if (this.#flushing === null && this.#line === "") this.#options.idle();
  }
}
