import { connect, type IncomingHttpHeaders } from "node:http2";

export interface GrpcCall {
  /** Path of the method: `/<package>.<service>/<method>`. */
  readonly path: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The framed messages: one flag byte and four length bytes precede each message. */
  readonly body: Uint8Array;
  readonly timeoutMs: number;
}

export interface GrpcReply {
  readonly messages: readonly Buffer[];
  readonly status: number;
  readonly message: string;
}

/** The error of a call that gets no response within its time limit while its connection is open. */
export class NoResponse extends Error {
  override readonly name = "NoResponse";
}

/** Sends one call on a new connection with exactly these bytes. Rejects when the server ends the call without a status. */
export async function callGrpc(port: number, call: GrpcCall): Promise<GrpcReply> {
  // Keeps white space around metadata values, as gRPC's own clients do.
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
        reject(new NoResponse(`no response to ${call.path} in ${call.timeoutMs} ms`)),
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

/** Splits the bytes of a stream into messages without their five-byte prefixes. */
export function splitMessages(bytes: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt32BE(at + 1);
    messages.push(bytes.subarray(at + 5, at + 5 + length));
    at += 5 + length;
  }
  return messages;
}
