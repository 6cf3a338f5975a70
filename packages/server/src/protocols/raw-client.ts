import { connect, type Socket } from "node:net";

export interface RawReply {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  /** The body in latin1: each character is one byte. */
  readonly body: string;
}

/** A TCP or Unix connection for tests that send exact bytes. Closed at the end of its `using` scope. */
export class RawConnection implements Disposable {
  readonly socket: Socket;
  #received = "";
  #ended = false;
  #wake: () => void = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk) => {
      this.#received += chunk.toString("latin1");
      this.#wake();
    });
    const end = () => {
      this.#ended = true;
      this.#wake();
    };
    socket.on("end", end).on("close", end).on("error", end);
  }

  static open(where: number | string): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const socket = typeof where === "number" ? connect(where, "127.0.0.1") : connect(where);
      socket.once("error", reject);
      socket.once("connect", () => resolve(new RawConnection(socket)));
    });
  }

  send(bytes: string | Uint8Array): void {
    if (typeof bytes === "string") this.socket.write(bytes, "latin1");
    else this.socket.write(bytes);
  }

  /** Returns the next complete response; null if the connection ends first. */
  async reply(): Promise<RawReply | null> {
    for (;;) {
      const headEnd = this.#received.indexOf("\r\n\r\n");
      if (headEnd >= 0) {
        const [statusLine = "", ...lines] = this.#received.slice(0, headEnd).split("\r\n");
        const headers = new Map(
          lines.map((line) => [
            line.slice(0, line.indexOf(":")).toLowerCase(),
            line.slice(line.indexOf(":") + 1).trim(),
          ]),
        );
        const status = Number(statusLine.split(" ")[1]);
        const length = status === 100 ? 0 : Number(headers.get("content-length") ?? 0);
        if (this.#received.length >= headEnd + 4 + length) {
          const body = this.#received.slice(headEnd + 4, headEnd + 4 + length);
          this.#received = this.#received.slice(headEnd + 4 + length);
          return { status, headers, body };
        }
      }
      if (this.#ended) return null;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

export function post(path: string, body: string | Uint8Array, headers = ""): Buffer {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const head = `POST ${path} HTTP/1.1\r\nHost: test\r\nContent-Length: ${bytes.length}\r\n${headers}\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), bytes]);
}

/** Sends one request on a new connection and returns its response. */
export async function sendRawRequest(where: number | string, request: string | Uint8Array): Promise<RawReply> {
  using connection = await RawConnection.open(where);
  connection.send(request);
  const reply = await connection.reply();
  if (reply === null) throw new Error("the connection ended without a reply");
  return reply;
}
