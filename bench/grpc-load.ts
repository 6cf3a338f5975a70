import { connect, type Socket } from "node:net";
import { runClosedLoop, type LoadResult } from "./load.ts";

export interface GrpcLoadOptions {
  readonly port: number;
  /** `/<package>.<service>/<method>` of a unary method. */
  readonly path: string;
  /** One request message, at most 16 KiB less its prefix, so that it fits one frame. */
  readonly message: Uint8Array;
  readonly clients: number;
  readonly durationMs: number;
  readonly warmUpMs: number;
}

const frame = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7 } as const;
const flag = { endStream: 1, ack: 1, endHeaders: 4 } as const;
const frameBytes = 9;
const messageBytesMax = 16 * 1024 - 5;

/**
 * Closed-loop load of unary calls over connections that speak HTTP/2 themselves, with every frame made before the clock starts: a client
 * library would be what is measured. One call at a time on each connection. An answer without a message, which is what errors look
 * like, ends it with an error.
 */
export function runGrpcLoad(options: GrpcLoadOptions): Promise<LoadResult> {
  if (options.message.length > messageBytesMax) throw new Error(`a message has at most ${messageBytesMax} bytes`);
  return runClosedLoop(options, (endMs, one) => runClient(options, endMs, one));
}

function runClient(
  options: GrpcLoadOptions,
  endMs: number,
  one: (sentMs: number, nowMs: number) => void,
): Promise<void> {
  const request = requestFrames(options);
  return new Promise((resolve, reject) => {
    let sentMs = 0;
    let stream = 1;
    const socket: Socket = connect({ host: "127.0.0.1", port: options.port, noDelay: true });
    const send = () => {
      sentMs = performance.now();
      socket.write(request(stream));
    };
    const read = answerReader({
      reply: (bytes) => {
        if (!socket.writableEnded) socket.write(bytes);
      },
      answered: () => {
        const nowMs = performance.now();
        one(sentMs, nowMs);
        stream += 2;
        if (nowMs < endMs) send();
        else socket.end();
      },
    });
    socket.on("connect", () => {
      socket.write(preface);
      send();
    });
    socket.on("data", (piece: Buffer) => {
      try {
        read(piece);
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    socket.on("error", reject);
    socket.on("close", () =>
      performance.now() < endMs ? reject(new Error("the server closed a connection")) : resolve(),
    );
  });
}

function frameOf(type: number, flags: number, stream: number, body: Uint8Array): Buffer {
  const head = Buffer.alloc(frameBytes);
  head.writeUIntBE(body.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, body]);
}

/** No table of header lines (so that none must be kept), and windows that no run of small answers fills. */
const preface = (() => {
  const settings = Buffer.alloc(12);
  settings.writeUInt16BE(1, 0);
  settings.writeUInt32BE(0, 2);
  settings.writeUInt16BE(4, 6);
  settings.writeUInt32BE(2 ** 31 - 1, 8);
  const window = Buffer.alloc(4);
  window.writeUInt32BE(2 ** 31 - 1 - 65_535);
  return Buffer.concat([
    Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1"),
    frameOf(frame.settings, 0, 0, settings),
    frameOf(8, 0, 0, window),
  ]);
})();

/** HEADERS and DATA of one call; only the number of the stream differs from call to call. */
function requestFrames({ path, message }: GrpcLoadOptions): (stream: number) => Buffer {
  const literal = (name: Buffer, value: string) =>
    Buffer.concat([name, Buffer.from([value.length]), Buffer.from(value, "latin1")]);
  const named = (name: string) => Buffer.from([0, name.length, ...Buffer.from(name, "latin1")]);
  const headers = Buffer.concat([
    // Of the static table: POST, http; then the names of :path, :authority and content-type with values of our own.
    Buffer.from([0x83, 0x86]),
    literal(Buffer.from([0x04]), path),
    literal(Buffer.from([0x01]), "localhost"),
    literal(Buffer.from([0x0f, 31 - 15]), "application/grpc"),
    literal(named("te"), "trailers"),
  ]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  const head = frameOf(frame.headers, flag.endHeaders, 0, headers);
  const data = frameOf(frame.data, flag.endStream, 0, Buffer.concat([prefix, message]));
  const both = Buffer.concat([head, data]);
  return (stream) => {
    both.writeUInt32BE(stream, 5);
    both.writeUInt32BE(stream, head.length + 5);
    return both;
  };
}

/** Reads frames as far as a load needs them: where an answer ends, and that it had a message. */
function answerReader(on: { reply: (bytes: Buffer) => void; answered: () => void }): (piece: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let messageBytes = 0;
  return (piece) => {
    let bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    while (bytes.length >= frameBytes) {
      const length = bytes.readUIntBE(0, 3);
      if (bytes.length < frameBytes + length) break;
      const type = bytes[3]!;
      const flags = bytes[4]!;
      const isAck = (flags & flag.ack) !== 0;
      if (type === frame.data) messageBytes += length;
      else if (type === frame.settings && !isAck) on.reply(frameOf(frame.settings, flag.ack, 0, new Uint8Array(0)));
      else if (type === frame.ping && !isAck)
        on.reply(frameOf(frame.ping, flag.ack, 0, Buffer.from(bytes.subarray(frameBytes, frameBytes + length))));
      else if (type === frame.reset || type === frame.goaway)
        throw new Error(`the server broke a call off (frame ${type})`);
      if ((type === frame.headers || type === frame.data) && (flags & flag.endStream) !== 0) {
        if (messageBytes === 0) throw new Error("a call was refused: its answer has no message");
        messageBytes = 0;
        on.answered();
      }
      bytes = bytes.subarray(frameBytes + length);
    }
    rest = bytes.length === 0 ? bytes : Buffer.from(bytes);
  };
}
