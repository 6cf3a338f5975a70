import { StringDecoder } from "node:string_decoder";
import type { Clock } from "@galatea/base";
import { formatLogLine } from "./log-lines.ts";

export interface LogWriterOptions {
  readonly clock: Clock;
  /** Appends complete lines; resolves when they are in the file. */
  readonly append: (lines: string) => Promise<void>;
  readonly failed: (error: unknown) => void;
  /** Called when no text is pending. */
  readonly idle: () => void;
  /** Maximum number of characters of an event. Longer lines are split. */
  readonly lineLengthMax: number;
  /** Maximum number of characters that wait for the disk. Output above it is dropped. */
  readonly waitingLengthMax: number;
}

/**
 * Converts a process's output to log events. One append runs at a time; the next append has all text that arrived
 * meanwhile.
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

  /** Resolves when all complete lines received so far are in the file, or their write has failed. */
  async written(): Promise<void> {
    // The running append may lack the newest text; the append after it has that text.
    await this.#flushing;
    await this.#flushing;
  }

  /** Writes all pending text, including an unfinished last line. */
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
