import { connect, type Socket } from "node:net";

/** A connection for bytes that no HTTP client would send. Disposal closes it. */
export class Wire implements Disposable {
  readonly socket: Socket;
  #received = Buffer.alloc(0);
  #ended = false;
  #wake: () => void = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#wake();
    });
    const end = () => {
      this.#ended = true;
      this.#wake();
    };
    socket.on("end", end).on("close", end).on("error", end);
  }

  static open(port: number): Promise<Wire> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      socket.once("error", reject);
      socket.once("connect", () => resolve(new Wire(socket)));
    });
  }

  /** True if the other side has closed the connection, after `status` or `closed` have waited for it. */
  get ended(): boolean {
    return this.#ended;
  }

  send(bytes: string | Uint8Array): void {
    this.socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  }

  /** Resolves with the next response with a Content-Length; null if the connection ended without one. */
  async reply(): Promise<{ readonly status: number; readonly body: string } | null> {
    for (;;) {
      const headBytes = this.#received.indexOf("\r\n\r\n");
      const head = this.#received.toString("latin1", 0, Math.max(0, headBytes));
      const bodyBytes = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      if (headBytes >= 0 && this.#received.length >= headBytes + 4 + bodyBytes) {
        const body = this.#received.toString("utf8", headBytes + 4, headBytes + 4 + bodyBytes);
        this.#received = this.#received.subarray(headBytes + 4 + bodyBytes);
        return { status: Number(head.split(" ")[1]), body };
      }
      if (this.#ended) return null;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

/** Sends these bytes on their own connection, and resolves with one response. */
export async function sendBytes(
  port: number,
  bytes: string | Uint8Array,
): Promise<{ readonly status: number; readonly body: string } | null> {
  using wire = await Wire.open(port);
  wire.send(bytes);
  return await wire.reply();
}
