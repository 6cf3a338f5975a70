import { GrpcError } from "./status.ts";

/** Receives the bytes of one message as they arrive. A chunk is valid only during the call, because its memory is reused. */
export interface MessageSink {
  write(chunk: Buffer): void;
  /** Called at the end of the message. */
  end(): void;
}

export interface SplitterOptions {
  readonly messageBytesMax: number;
  /** Called when a message begins. An exception rejects the message. */
  readonly open: (byteLength: number, compressed: boolean) => MessageSink;
}

const prefixBytes = 5;

/** Splits the bytes of a call into messages. A message is one byte of flags, four bytes of length, then its content. */
export class MessageSplitter {
  readonly #options: SplitterOptions;
  readonly #prefix = Buffer.alloc(prefixBytes);
  #prefixAt = 0;
  #sink: MessageSink | null = null;
  #left = 0;

  constructor(options: SplitterOptions) {
    this.#options = options;
  }

  /** True if the bytes received so far end within a message. */
  get inMessage(): boolean {
    return this.#sink !== null || this.#prefixAt > 0;
  }

  /** Processes received bytes. Throws GrpcError, or the sink's error. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#sink === null) {
        at = this.#readPrefix(chunk, at);
        continue;
      }
      const take = Math.min(this.#left, chunk.length - at);
      this.#sink.write(at === 0 && take === chunk.length ? chunk : chunk.subarray(at, at + take));
      at += take;
      this.#left -= take;
      if (this.#left === 0) this.#end();
    }
  }

  #readPrefix(chunk: Buffer, from: number): number {
    let at = from;
    while (this.#prefixAt < prefixBytes && at < chunk.length) this.#prefix[this.#prefixAt++] = chunk[at++]!;
    if (this.#prefixAt < prefixBytes) return at;
    this.#prefixAt = 0;
    const flags = this.#prefix[0]!;
    if (flags > 1) throw new GrpcError("INTERNAL", `Bad GRPC frame type 0x${flags.toString(16).padStart(2, "0")}`);
    const byteLength = this.#prefix.readUInt32BE(1);
    const { messageBytesMax } = this.#options;
    if (byteLength > messageBytesMax) {
      throw new GrpcError(
        "RESOURCE_EXHAUSTED",
        `Received message larger than max (${byteLength} vs. ${messageBytesMax})`,
      );
    }
    this.#left = byteLength;
    this.#sink = this.#options.open(byteLength, flags === 1);
    if (byteLength === 0) this.#end();
    return at;
  }

  #end(): void {
    const sink = this.#sink;
    this.#sink = null;
    sink?.end();
  }
}

/** Writes the five bytes (flags and length) that precede a message. */
export function writePrefix(into: Uint8Array, byteLength: number, compressed: boolean): void {
  into[0] = compressed ? 1 : 0;
  into[1] = byteLength >>> 24;
  into[2] = byteLength >>> 16;
  into[3] = byteLength >>> 8;
  into[4] = byteLength;
}

export { prefixBytes };
