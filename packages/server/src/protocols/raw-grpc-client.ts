import { connect, type IncomingHttpHeaders } from "node:http2";

export interface GrpcCall {
  /** `/<package>.<service>/<method>` */
  readonly path: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Messages, each behind its five bytes. */
  readonly body: Uint8Array;
  readonly timeoutMs: number;
}

export interface GrpcReply {
  readonly messages: readonly Buffer[];
  readonly status: number;
  readonly message: string;
}

/** The connection stands and nothing comes. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/** One call on a connection of its own, byte for byte as asked. Rejects when the server breaks it off without a status. */
export async function callGrpc(port: number, call: GrpcCall): Promise<GrpcReply> {
  // As gRPC's own clients, it keeps blanks around metadata.
  const session = connect(`http://127.0.0.1:${port}`, { strictFieldWhitespaceValidation: false });
  try {
    return await new Promise((resolve, reject) => {
      session.on("error", reject);
      const stream = session.request({
        ":method": "POST",
        ":path": call.path,
        "content-type": "application/grpc",
        te: "trailers",
        ...call.metadata,
      });
      const chunks: Buffer[] = [];
      let end: IncomingHttpHeaders | null = null;
      stream.setTimeout(call.timeoutMs, () =>
        reject(new NoAnswer(`no answer to ${call.path} in ${call.timeoutMs} ms`)),
      );
      stream.on("response", (headers) => {
        if (headers["grpc-status"] !== undefined) end = headers;
      });
      stream.on("trailers", (trailers) => (end = trailers));
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("error", reject);
      stream.on("close", () => {
        if (end === null) return reject(new Error(`${call.path} ended without a status`));
        const message = decodeURIComponent((end["grpc-message"] as string | undefined) ?? "");
        resolve({ messages: splitMessages(Buffer.concat(chunks)), status: Number(end["grpc-status"]), message });
      });
      stream.end(call.body);
    });
  } finally {
    session.destroy();
  }
}

export function frameMessage(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** The messages of a whole stream, each without its five bytes. */
export function splitMessages(bytes: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt32BE(at + 1);
    messages.push(bytes.subarray(at + 5, at + 5 + length));
    at += 5 + length;
  }
  return messages;
}
