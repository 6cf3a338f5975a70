import { Socket } from "node:net";

/** Limit of a message in bytes; a longer message is an error of the sender. A model with ten thousand inputs needs about one megabyte. */
const messageBytesMax = 64 * 1024 * 1024;

export interface JsonChannelEvents {
  onMessage(message: unknown): void;
  /** Called when the peer has closed its socket or sent an invalid message, or after `close`. */
  onClosed(): void;
}

/** JSON messages, one per line, over one end of a socket pair. Owns the file descriptor. */
export class JsonChannel {
  readonly #socket: Socket;
  readonly #events: JsonChannelEvents;
  #chunks: Buffer[] = [];
  #partBytes = 0;

  constructor(fd: number, events: JsonChannelEvents) {
    this.#events = events;
    this.#socket = new Socket({ fd, readable: true, writable: true });
    this.#socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#socket.on("error", () => {}); // The `close` event follows and reports it.
    this.#socket.on("end", () => this.close());
    this.#socket.on("close", () => events.onClosed());
  }

  send(message: unknown): void {
    if (!this.#socket.destroyed) this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  ref(): void {
    this.#socket.ref();
  }

  /** Lets the process exit while the channel is open. */
  unref(): void {
    this.#socket.unref();
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    let at = 0;
    for (let end = chunk.indexOf(10); end !== -1 && !this.#socket.destroyed; end = chunk.indexOf(10, at)) {
      const line = Buffer.concat([...this.#chunks, chunk.subarray(at, end)]);
      this.#chunks = [];
      this.#partBytes = 0;
      at = end + 1;
      let message: unknown;
      try {
        message = JSON.parse(line.toString("utf8"));
      } catch {
        return this.close();
      }
      this.#events.onMessage(message);
    }
    if (at === chunk.byteLength) return;
    this.#chunks.push(Buffer.from(chunk.subarray(at)));
    this.#partBytes += chunk.byteLength - at;
    if (this.#partBytes > messageBytesMax) this.close();
  }
}
