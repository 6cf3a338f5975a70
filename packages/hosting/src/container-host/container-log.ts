import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CoalescedWriter, type Clock } from "@galatea/base";
import { OutputLines } from "@galatea/base/processes";
import type { EngineClient } from "./engine-client.ts";
import { LogFrames, sinceText, type LogMessage } from "./log-frames.ts";

export interface ContainerLogOptions {
  readonly client: EngineClient;
  readonly containerId: string;
  /**
   * Directory for the file with the time of the last message. The next run of the platform continues after this
   * message.
   */
  readonly directory: string;
  readonly onLine: (line: string) => void;
  readonly clock: Clock;
}

const fileName = "log-position";

/**
 * The output of a container, read from the engine's log. A restart of the platform continues after the last message
 * that was read.
 */
export class ContainerLog {
  readonly #options: ContainerLogOptions;
  readonly #lines: Readonly<Record<LogMessage["stream"], OutputLines>>;
  readonly #position: CoalescedWriter<bigint>;
  #lastNs: bigint;

  private constructor(options: ContainerLogOptions, lastNs: bigint) {
    const { directory, clock, onLine } = options;
    this.#options = options;
    this.#lastNs = lastNs;
    this.#lines = { stdout: new OutputLines(clock, onLine), stderr: new OutputLines(clock, onLine) };
    this.#position = new CoalescedWriter((timeNs) => writeFile(join(directory, fileName), String(timeNs)));
  }

  /** Opens the log at the container's first message. */
  static async begin(options: ContainerLogOptions): Promise<ContainerLog> {
    await writeFile(join(options.directory, fileName), "0");
    return new ContainerLog(options, 0n);
  }

  /** Opens the log after the last message that the previous run of the platform read. */
  static async continue(options: ContainerLogOptions): Promise<ContainerLog> {
    const text = await readFile(join(options.directory, fileName), "latin1").catch(() => "");
    return new ContainerLog(options, /^\d+$/.test(text) ? BigInt(text) : 0n);
  }

  /** Returns the last lines of stdout, then those of stderr. */
  get tail(): readonly string[] {
    return [...this.#lines.stdout.tail, ...this.#lines.stderr.tail];
  }

  /** Reads messages until the engine ends the stream, because the container or the engine has ended. Rejects with the signal's reason. */
  async follow(signal: AbortSignal): Promise<void> {
    const { client, containerId } = this.#options;
    const query = `follow=1&stdout=1&stderr=1&timestamps=1&since=${sinceText(this.#lastNs)}`;
    const body = await client.stream({ method: "GET", path: `/containers/${containerId}/logs?${query}`, signal });
    const frames = new LogFrames();
    for await (const chunk of body as AsyncIterable<Buffer>) {
      for (const message of frames.push(chunk)) this.#take(message);
    }
  }

  /** Forwards the last line if it has no newline. Call it after the last `follow`. */
  end(): void {
    this.#lines.stdout.end();
    this.#lines.stderr.end();
  }

  #take({ stream, timeNs, text }: LogMessage): void {
    // The engine's `since` parameter is inclusive: the engine sends the last message again.
    if (timeNs <= this.#lastNs) return;
    this.#lastNs = timeNs;
    this.#lines[stream].push(text);
    // A failed write is ignored: its only effect is that the next run of the platform may forward some lines again.
    this.#position.write(timeNs).catch(() => {});
  }
}
