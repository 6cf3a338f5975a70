import { connect, type Socket } from "node:net";
import { runClosedLoop, type LoadResult } from "./load.ts";

export interface GrpcLoadOptions {
  readonly port: number;
  /** `/<package>.<service>/<method>` of a unary method. */
  readonly path: string;
  /** One request message, at most 16 KiB less its prefix, so that it fits one frame. */
  readonly message: Uint8Array;
  /** Given for a method with streams: all requests of a client go over one stream, and each has so many answers. */
  readonly streamedAnswers?: number;
  readonly clients: number;
  readonly durationMs: number;
  readonly warmUpMs: number;
}

const frame = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7 } as const;
const flag = { endStream: 1, ack: 1, endHeaders: 4 } as const;
const frameBytes = 9;
const messageBytesMax = 16 * 1024 - 5;

/**
 * Closed-loop load over connections that speak HTTP/2 themselves, with every frame made before the clock starts: a client library would
 * be what is measured. One request at a time on each connection: a unary call, or a message of the one streaming call. What errors
 * look like, an answer without a message or the end of a stream, ends it with an error.
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
  const { streamedAnswers } = options;
  const request = streamedAnswers === undefined ? unaryFrames(options) : streamFrames(options);
  return new Promise((resolve, reject) => {
    let sentMs = 0;
    const socket: Socket = connect({ host: "127.0.0.1", port: options.port, noDelay: true });
    const send = () => {
      sentMs = performance.now();
      socket.write(request());
    };
    const read = answerReader({
      streamedAnswers: streamedAnswers ?? null,
      reply: (bytes) => {
        if (!socket.writableEnded) socket.write(bytes);
      },
      answered: () => {
        const nowMs = performance.now();
        one(sentMs, nowMs);
        if (nowMs < endMs) send();
        else socket.end();
      },
    });
    socket.on("connect", () => {
      socket.write(preface);
      send();
    });
    socket.on("data", (piece: Buffer) => {
      // What a server says to the end of a connection is no answer.
      if (socket.writableEnded) return;
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

function headersFrame(path: string): Buffer {
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
  return frameOf(frame.headers, flag.endHeaders, 0, headers);
}

function dataFrame(message: Uint8Array, flags: number): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return frameOf(frame.data, flags, 0, Buffer.concat([prefix, message]));
}

/** HEADERS and DATA of one call after the other; only the number of the stream differs from call to call. */
function unaryFrames({ path, message }: GrpcLoadOptions): () => Buffer {
  const head = headersFrame(path);
  const both = Buffer.concat([head, dataFrame(message, flag.endStream)]);
  let stream = -1;
  return () => {
    stream += 2;
    both.writeUInt32BE(stream, 5);
    both.writeUInt32BE(stream, head.length + 5);
    return both;
  };
}

/** The first request opens the stream, the others are messages of it. */
function streamFrames({ path, message }: GrpcLoadOptions): () => Buffer {
  const head = headersFrame(path);
  const data = dataFrame(message, 0);
  for (const part of [head, data]) part.writeUInt32BE(1, 5);
  const first = Buffer.concat([head, data]);
  let opened = false;
  return () => {
    if (opened) return data;
    opened = true;
    return first;
  };
}

/** The tag of a streamed answer's `error_message`. */
const errorMessageTag = 0x0a;

interface AnswerReaderOptions {
  /** null: the answer to a unary call, which ends with its stream. */
  readonly streamedAnswers: number | null;
  readonly reply: (bytes: Buffer) => void;
  readonly answered: () => void;
}

/** Reads frames as far as a load needs them: how many messages came and where an answer ends. */
function answerReader(on: AnswerReaderOptions): (piece: Buffer) => void {
  const { streamedAnswers } = on;
  let rest: Buffer = Buffer.alloc(0);
  let body: Buffer = Buffer.alloc(0);
  let messages = 0;
  const takeMessages = (data: Buffer) => {
    body = body.length === 0 ? data : Buffer.concat([body, data]);
    let at = 0;
    for (; body.length - at >= 5; messages++) {
      const end = at + 5 + body.readUInt32BE(at + 1);
      if (body.length < end) break;
      if (streamedAnswers !== null && body[at + 5] === errorMessageTag)
        throw new Error(`an answer is an error: ${body.toString("latin1", at + 7, end)}`);
      at = end;
    }
    body = Buffer.from(body.subarray(at));
  };
  return (piece) => {
    let bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    while (bytes.length >= frameBytes) {
      const length = bytes.readUIntBE(0, 3);
      if (bytes.length < frameBytes + length) break;
      const type = bytes[3]!;
      const flags = bytes[4]!;
      const isAck = (flags & flag.ack) !== 0;
      const content = bytes.subarray(frameBytes, frameBytes + length);
      if (type === frame.data) takeMessages(content);
      else if (type === frame.settings && !isAck) on.reply(frameOf(frame.settings, flag.ack, 0, new Uint8Array(0)));
      else if (type === frame.ping && !isAck) on.reply(frameOf(frame.ping, flag.ack, 0, Buffer.from(content)));
      else if (type === frame.reset || type === frame.goaway)
        throw new Error(`the server broke a call off (frame ${type})`);
      const isEnd = (type === frame.headers || type === frame.data) && (flags & flag.endStream) !== 0;
      if (isEnd && (messages === 0 || streamedAnswers !== null))
        throw new Error("a call was refused: it ended without its answers");
      if (streamedAnswers === null ? isEnd : messages === streamedAnswers) {
        messages = 0;
        on.answered();
      }
      bytes = bytes.subarray(frameBytes + length);
    }
    rest = bytes.length === 0 ? bytes : Buffer.from(bytes);
  };
}
