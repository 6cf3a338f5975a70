import { connect, type Socket } from "node:net";
import {
  clientPreface,
  defaultFrameBytesMax,
  defaultWindowBytes,
  frameFlags,
  frameHeadBytes,
  frameOf,
  FrameReader,
  frameTypes,
  settingIds,
  settingsOf,
  windowBytesMax,
  windowUpdate,
  type ControlFrame,
} from "./http2-frames.ts";
import { runClosedLoop, type LoadResult } from "./load.ts";

export interface GrpcLoadOptions {
  readonly port: number;
  /** `/<package>.<service>/<method>` of a unary method. */
  readonly path: string;
  /** One request message. */
  readonly message: Uint8Array;
  /** Set for a method with streams: all requests of a client use one stream, and each gets this number of responses. */
  readonly streamedAnswers?: number;
  readonly clients: number;
  readonly durationMs: number;
  readonly warmUpMs: number;
}

/**
 * A response of 1 MiB fits in a few reads. There is one buffer for each connection, so that nothing is allocated during
 * the measurement.
 */
const readBytes = 256 * 1024;
const prefixBytes = 5;
/** The tag of `error_message` in a streamed response. */
const errorMessageTag = 0x0a;

/**
 * Closed-loop load over connections that implement HTTP/2 themselves, with frames that are created before the
 * measurement. With a client library, the library would be measured. Each connection has one request in flight: a unary
 * call, or a message of its only stream. Frames have the maximum size of the server, within its flow-control windows.
 * An error, a response without a message or the end of a stream ends the run.
 */
export function runGrpcLoad(options: GrpcLoadOptions): Promise<LoadResult> {
  return runClosedLoop(options, (endMs, one) => {
    const client = new GrpcClient(options, endMs, one);
    return client.ended;
  });
}

class GrpcClient {
  readonly #socket: Socket;
  readonly #requests: RequestFrames;
  readonly #streamedAnswers: number | null;
  readonly #endMs: number;
  readonly #one: (sentMs: number, nowMs: number) => void;
  readonly #messages = new MessageCounter();
  #sentMs = 0;
  /** Bytes of responses since the client last enlarged its flow-control windows. */
  #receivedBytes = 0;
  readonly ended: Promise<void>;

  constructor(options: GrpcLoadOptions, endMs: number, one: (sentMs: number, nowMs: number) => void) {
    this.#streamedAnswers = options.streamedAnswers ?? null;
    this.#requests = new RequestFrames(options);
    this.#endMs = endMs;
    this.#one = one;
    const reader = new FrameReader({
      data: (chunk) => this.#onData(chunk),
      control: (frame) => this.#onControl(frame),
      streamEnded: () => this.#onStreamEnd(),
    });
    const buffer = Buffer.allocUnsafe(readBytes);
    const read = (byteLength: number) => {
      try {
        reader.push(buffer.subarray(0, byteLength));
      } catch (error) {
        this.#socket.destroy(error as Error);
      }
      return true;
    };
    const onread = { buffer, callback: read };
    this.#socket = connect({ host: "127.0.0.1", port: options.port, noDelay: true, onread });
    this.ended = new Promise((resolve, reject) => {
      this.#socket.on("connect", () => {
        this.#write(clientPreface);
        this.#send();
      });
      this.#socket.on("error", reject);
      this.#socket.on("close", () =>
        performance.now() < endMs ? reject(new Error("the server closed a connection")) : resolve(),
      );
    });
  }

  #send(): void {
    this.#sentMs = performance.now();
    this.#messages.count = 0;
    this.#requests.begin();
    this.#sendMore();
  }

  #sendMore(): void {
    const bytes = this.#requests.next();
    if (bytes.length > 0) this.#write(bytes);
  }

  #write(bytes: Buffer): void {
    if (!this.#socket.writableEnded) this.#socket.write(bytes);
  }

  #onData(chunk: Buffer): void {
    this.#messages.push(chunk, this.#streamedAnswers !== null);
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes > windowBytesMax / 4) {
      this.#write(windowUpdate(0, this.#receivedBytes));
      if (this.#streamedAnswers !== null) this.#write(windowUpdate(1, this.#receivedBytes));
      this.#receivedBytes = 0;
    }
    if (this.#messages.count === this.#streamedAnswers) this.#responded();
  }

  #onStreamEnd(): void {
    if (this.#socket.writableEnded) return;
    if (this.#streamedAnswers !== null || this.#messages.count === 0)
      throw new Error("a call was refused: it ended without its answers");
    this.#responded();
  }

  #responded(): void {
    const nowMs = performance.now();
    this.#one(this.#sentMs, nowMs);
    if (nowMs < this.#endMs) this.#send();
    else this.#socket.end();
  }

  #onControl({ type, flags, stream, content }: ControlFrame): void {
    const isAck = (flags & frameFlags.ack) !== 0;
    if (type === frameTypes.settings && !isAck) {
      this.#requests.settings(content);
      this.#write(frameOf(frameTypes.settings, frameFlags.ack, 0, new Uint8Array(0)));
    } else if (type === frameTypes.ping && !isAck) {
      this.#write(frameOf(frameTypes.ping, frameFlags.ack, 0, content));
    } else if (type === frameTypes.windowUpdate) {
      this.#requests.widen(stream, content.readUInt32BE(0));
      // An error text at the end of a connection is not a response.
    } else if ((type === frameTypes.reset || type === frameTypes.goaway) && !this.#socket.writableEnded)
      throw new Error(`the server broke a call off (frame ${type})`);
    this.#sendMore();
  }
}

/** Counts the messages of responses as their bytes arrive. */
class MessageCounter {
  count = 0;
  readonly #prefix = Buffer.alloc(prefixBytes);
  #prefixAt = 0;
  #missing = 0;
  #isAtStart = false;

  push(chunk: Buffer, checksErrors: boolean): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#prefixAt < prefixBytes) {
        const used = chunk.copy(this.#prefix, this.#prefixAt, at);
        this.#prefixAt += used;
        at += used;
        if (this.#prefixAt < prefixBytes) return;
        this.#missing = this.#prefix.readUInt32BE(1);
        this.#isAtStart = true;
      } else {
        const used = Math.min(this.#missing, chunk.length - at);
        if (checksErrors && this.#isAtStart && chunk[at] === errorMessageTag)
          throw new Error(`an answer is an error: ${chunk.toString("latin1", at + 2, at + used)}`);
        this.#isAtStart = false;
        this.#missing -= used;
        at += used;
      }
      if (this.#missing === 0) {
        this.count++;
        this.#prefixAt = 0;
      }
    }
  }
}

/**
 * The frames of the requests; only the stream id differs between calls. For a streaming call the first request opens
 * the stream, and the others are messages of it.
 */
class RequestFrames {
  readonly #head: Buffer;
  readonly #message: Buffer;
  readonly #isStreaming: boolean;
  /** HEADERS, then DATA, and the offset of each of them; the last offset is the total length. */
  #frames: Buffer = Buffer.alloc(0);
  #starts: number[] = [];
  #frameBytesMax = defaultFrameBytesMax;
  #dataFrameBytes = 0;
  #next = 0;
  #stream = -1;
  #initialWindowBytes = defaultWindowBytes;
  #streamWindowBytes = 0;
  #connectionWindowBytes = defaultWindowBytes;

  constructor({ path, message, streamedAnswers }: GrpcLoadOptions) {
    this.#head = headersFrame(path);
    const prefix = Buffer.alloc(prefixBytes);
    prefix.writeUInt32BE(message.length, 1);
    this.#message = Buffer.concat([prefix, message]);
    this.#isStreaming = streamedAnswers !== undefined;
  }

  /** Starts another request after the response to the previous one. */
  begin(): void {
    const isFirst = this.#stream === -1;
    if (isFirst || !this.#isStreaming) {
      this.#stream += 2;
      this.#streamWindowBytes = this.#initialWindowBytes;
    }
    // A frame of the window's size would wait until the whole window is free.
    const frameBytes = Math.min(this.#frameBytesMax, Math.max(1024, this.#initialWindowBytes >> 1));
    const isCurrent = this.#dataFrameBytes === frameBytes;
    if (!isCurrent) this.#createFrames(frameBytes);
    if (!isCurrent || !this.#isStreaming)
      for (const at of this.#starts.slice(0, -1)) this.#frames.writeUInt32BE(this.#stream, at + 5);
    this.#next = this.#isStreaming && !isFirst ? 1 : 0;
  }

  /** The unsent part of the request that fits the server's flow-control windows now. */
  next(): Buffer {
    const starts = this.#starts;
    const first = this.#next;
    let index = first;
    for (; index < starts.length - 1; index++) {
      if (index === 0) continue;
      const byteLength = starts[index + 1]! - starts[index]! - frameHeadBytes;
      if (byteLength > this.#streamWindowBytes || byteLength > this.#connectionWindowBytes) break;
      this.#streamWindowBytes -= byteLength;
      this.#connectionWindowBytes -= byteLength;
    }
    this.#next = index;
    return this.#frames.subarray(starts[first], starts[index]);
  }

  settings(content: Buffer): void {
    for (const [id, value] of settingsOf(content)) {
      if (id === settingIds.frameBytesMax) this.#frameBytesMax = value;
      if (id !== settingIds.initialWindowBytes) continue;
      this.#streamWindowBytes += value - this.#initialWindowBytes;
      this.#initialWindowBytes = value;
    }
  }

  widen(stream: number, byteLength: number): void {
    if (stream === 0) this.#connectionWindowBytes += byteLength;
    else if (stream === this.#stream) this.#streamWindowBytes += byteLength;
  }

  #createFrames(frameBytes: number): void {
    const frames = [this.#head];
    for (let at = 0; at < this.#message.length; at += frameBytes) {
      const isLast = at + frameBytes >= this.#message.length;
      const flags = isLast && !this.#isStreaming ? frameFlags.endStream : 0;
      frames.push(frameOf(frameTypes.data, flags, 0, this.#message.subarray(at, at + frameBytes)));
    }
    let at = 0;
    this.#starts = [0, ...frames.map((frame) => (at += frame.length))];
    this.#frames = Buffer.concat(frames);
    this.#dataFrameBytes = frameBytes;
  }
}

function headersFrame(path: string): Buffer {
  const literal = (name: Buffer, value: string) =>
    Buffer.concat([name, Buffer.from([value.length]), Buffer.from(value, "latin1")]);
  const named = (name: string) => Buffer.from([0, name.length, ...Buffer.from(name, "latin1")]);
  const headers = Buffer.concat([
    // Static table entries for POST and http; then the names of :path, :authority and content-type with literal values.
    Buffer.from([0x83, 0x86]),
    literal(Buffer.from([0x04]), path),
    literal(Buffer.from([0x01]), "localhost"),
    literal(Buffer.from([0x0f, 31 - 15]), "application/grpc"),
    literal(named("te"), "trailers"),
  ]);
  return frameOf(frameTypes.headers, frameFlags.endHeaders, 0, headers);
}
