import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { ByteLease, type ByteBudget, type Clock, type Semaphore } from "@galatea/base";
import { InflationSlot } from "../inflation-slot.ts";
import { BufferedMessage } from "./buffered-message.ts";
import { parseGrpcTimeout } from "./grpc-timeout.ts";
import type { GrpcLimits } from "./limits.ts";
import {
  acceptedEncodings,
  compressMessage,
  decompressMessage,
  messageEncoding,
  grpcResponseEncoding,
  type CompressionLevel,
  type MessageEncoding,
} from "./message-compression.ts";
import { MessageSplitter, prefixBytes, writePrefix, type MessageSink } from "./message-splitter.ts";
import type { ReadBuffers } from "./read-buffers.ts";
import { encodeStatusMessage, GrpcError, grpcStatus, grpcStatusOf, type GrpcStatus } from "./status.ts";

/** Receives the client's messages of a call. An exception that a method throws ends the call with the status of that error. */
export interface CallReceiver {
  /** Called when a message of `byteLength` bytes begins; returns the sink for its bytes. */
  begin(byteLength: number): MessageSink;
  /** Called after the client's last message. */
  halfClosed(): void;
}

export interface CallOptions {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly limits: GrpcLimits;
  readonly compressionLevel: CompressionLevel;
  readonly clock: Clock;
  /** Memory budget for messages in flight. */
  readonly budget: ByteBudget;
  /** Frees the buffers into which the call's connection is read, after their bytes were consumed. */
  readonly reads: ReadBuffers;
  /** Limits how many messages are decompressed to a large size at once (`InflationSlot`). */
  readonly inflations: Semaphore;
}

/** Chunks of messages up to this size are joined to one buffer, which is cheaper than several writes. */
const joinedBytesMax = 16 * 1024;
/**
 * Estimated memory of a call without its messages: objects of Node and the server, metadata. A call is never rejected for this memory, so
 * it is charged even over the budget.
 */
const callBytes = 4 * 1024;
/** gRPC's core sends no Date header. */
const respondOptions = { waitForTrailers: true, sendDate: false };
/** Time in milliseconds for which a client may continue to send after its call has ended. After that, its stream is reset. */
const lingerMs = 2000;

/**
 * One gRPC call: messages in both directions, and one status at the end. `signal` aborts when no client waits for the response any more:
 * the client has cancelled or disconnected, its deadline has passed, or the server ends the call without a status.
 */
export class Call {
  readonly headers: IncomingHttpHeaders;
  /** The call's lease of the memory budget. Released when no bytes of the call are in flight any more. */
  readonly memory: ByteLease;
  /** Time limit that the client has set, in milliseconds; null for none. */
  readonly timeoutMs: number | null;
  readonly #stream: ServerHttp2Stream;
  readonly #limits: GrpcLimits;
  readonly #clock: Clock;
  readonly #reads: ReadBuffers;
  readonly #inflations: Semaphore;
  readonly #controller = new AbortController();
  readonly #compressionLevel: CompressionLevel;
  readonly #requestEncoding: MessageEncoding | null;
  readonly #grpcResponseEncoding: MessageEncoding;
  readonly #deadline: Disposable | null;
  #splitter: MessageSplitter | null = null;
  /**
   * Resolves when the messages that are being decompressed were passed to the receiver; null if there are none. Later messages wait for it,
   * which preserves their order.
   */
  #expanding: Promise<void> | null = null;
  #state: "reading" | "answering" | "finished" = "reading";
  #releases: (() => void)[] = [];
  #closed = false;
  #isHeld = false;
  #isCutOff = false;

  constructor({ stream, headers, limits, compressionLevel, clock, budget, reads, inflations }: CallOptions) {
    this.headers = headers;
    this.memory = new ByteLease(budget);
    this.memory.growUnchecked(callBytes);
    this.#stream = stream;
    this.#limits = limits;
    this.#clock = clock;
    this.#reads = reads;
    this.#inflations = inflations;
    this.#compressionLevel = compressionLevel;
    this.#requestEncoding = messageEncoding(headers["grpc-encoding"] as string | undefined);
    this.#grpcResponseEncoding = grpcResponseEncoding(
      headers["grpc-accept-encoding"] as string | undefined,
      compressionLevel,
    );
    this.timeoutMs = parseGrpcTimeout(headers["grpc-timeout"] as string | undefined);
    this.#deadline = this.timeoutMs === null ? null : clock.timer(this.timeoutMs, () => this.#onDeadline());
    stream.once("close", () => this.#onClose());
    // The `close` event handles errors. Without a listener here, an error would end the process.
    stream.on("error", () => {});
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** True when the status has been sent, or cannot be sent any more. */
  get isOver(): boolean {
    // The stream reports its end one tick late. If the client ended the stream without an error while bytes are unread, it is closed but
    // not destroyed.
    return this.#closed || this.#state === "finished" || this.#stream.closed || this.#stream.destroyed;
  }

  /** True if the server has ended the call without a status. */
  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  /** Calls `release` once when no bytes of this call are in flight any more. */
  onClosed(release: () => void): void {
    if (this.#closed) release();
    else this.#releases.push(release);
  }

  /** Passes the client's messages to `receiver` as they arrive. */
  receive(receiver: CallReceiver): void {
    const stream = this.#stream;
    if (this.#requestEncoding === null) {
      const name = String(this.headers["grpc-encoding"]);
      return this.fail(new GrpcError("UNIMPLEMENTED", `Compression algorithm '${name}' is not known.`));
    }
    this.#splitter = new MessageSplitter({
      messageBytesMax: this.#limits.messageBytesMax,
      open: (byteLength, compressed) =>
        compressed || this.#expanding !== null
          ? this.#gather(receiver, byteLength, compressed)
          : receiver.begin(byteLength),
    });
    stream.setTimeout(this.#limits.stallTimeoutMs, () => this.#onStall());
    stream.on("data", (chunk: Buffer) => {
      this.#guard(() => this.#splitter?.push(chunk));
      this.#reads.consumed(chunk);
    });
    stream.on("end", () => this.#guard(() => this.#onHalfClose(receiver)));
  }

  /** Stops reading from the client until `resume`. HTTP/2 flow control then makes the client stop sending. */
  pause(): void {
    this.#isHeld = true;
    this.#stream.pause();
  }

  resume(): void {
    this.#isHeld = false;
    if (this.#expanding === null) this.#stream.resume();
  }

  #guard(work: () => void): void {
    if (this.isOver) return;
    try {
      work();
    } catch (error) {
      this.fail(error);
    }
  }

  #onHalfClose(receiver: CallReceiver): void {
    if (this.#splitter?.inMessage === true) throw new GrpcError("INTERNAL", "the request ends inside of a message");
    if (this.#expanding === null) return receiver.halfClosed();
    void this.#expanding.then(() => this.#guard(() => receiver.halfClosed()));
  }

  /**
   * Collects a message that is compressed, or that follows a compressed one. The thread pool decompresses a compressed message. The
   * receiver then gets the whole message in one chunk.
   */
  #gather(receiver: CallReceiver, byteLength: number, compressed: boolean): MessageSink {
    const packed = new BufferedMessage(byteLength, this.memory);
    return {
      write: (chunk) => packed.write(chunk),
      end: () => {
        // Only one message of a call is decompressed at a time. The stream is paused meanwhile, so that later messages stay unread.
        this.#stream.pause();
        const before = this.#expanding ?? Promise.resolve();
        const expanding: Promise<void> = before.then(async () => {
          await this.#deliverMessage(receiver, packed, compressed);
          if (this.#expanding !== expanding) return;
          this.#expanding = null;
          if (!this.#isHeld) this.#stream.resume();
        });
        this.#expanding = expanding;
      },
    };
  }

  async #deliverMessage(receiver: CallReceiver, packed: BufferedMessage, compressed: boolean): Promise<void> {
    const { messageBytesMax } = this.#limits;
    const { memory } = this;
    using slot = new InflationSlot(this.#inflations, this.signal);
    try {
      const encoding = this.#requestEncoding ?? "identity";
      const bounds = { messageBytesMax, memory, slot };
      const message = compressed ? await decompressMessage(packed.bytes, encoding, bounds) : packed;
      if (message !== packed) memory.shrinkBy(packed.heldBytes);
      this.#guard(() => deliver(receiver, message.bytes));
      memory.shrinkBy(message.heldBytes);
    } catch (error) {
      this.fail(error);
    }
  }

  /**
   * Sends one message, which consists of these chunks. The chunks must not change until `sent` is called, which happens exactly once.
   * Returns false if the client reads too slowly; the caller should then wait for `drained`.
   */
  send(chunks: readonly Uint8Array[], sent: () => void): boolean {
    if (this.isOver) {
      sent();
      return true;
    }
    let byteLength = 0;
    for (const segment of chunks) byteLength += segment.byteLength;
    if (byteLength > this.#limits.messageBytesMax) {
      sent();
      throw new GrpcError(
        "INTERNAL",
        `Response has byte size ${byteLength} which exceeds gRPC's byte size limit ${this.#limits.messageBytesMax}.`,
      );
    }
    this.#sendResponse();
    return this.#write(chunks, byteLength, sent);
  }

  /** Sends a message like `send`. Compresses it if the client accepts an encoding and the server is configured to compress. */
  async sendCompressed(chunks: readonly Uint8Array[], sent: () => void): Promise<boolean> {
    const encoding = this.#grpcResponseEncoding;
    if (encoding === "identity") return this.send(chunks, sent);
    let packed: Buffer;
    try {
      packed = await compressMessage(chunks, encoding, this.#compressionLevel);
    } finally {
      sent();
    }
    if (this.isOver) return true;
    this.#sendResponse();
    const prefix = Buffer.allocUnsafe(prefixBytes);
    writePrefix(prefix, packed.length, true);
    this.#writeCopy(prefix);
    return this.#writeCopy(packed);
  }

  #write(chunks: readonly Uint8Array[], byteLength: number, sent: () => void): boolean {
    const stream = this.#stream;
    if (byteLength <= joinedBytesMax) {
      const complete = Buffer.allocUnsafe(prefixBytes + byteLength);
      writePrefix(complete, byteLength, false);
      let at = prefixBytes;
      for (const segment of chunks) {
        complete.set(segment, at);
        at += segment.byteLength;
      }
      sent();
      return this.#writeCopy(complete);
    }
    const prefix = Buffer.allocUnsafe(prefixBytes);
    writePrefix(prefix, byteLength, false);
    stream.cork();
    stream.write(prefix);
    let isUsed = true;
    for (const [index, segment] of chunks.entries())
      isUsed = index === chunks.length - 1 ? stream.write(segment, () => sent()) : stream.write(segment);
    stream.uncork();
    return isUsed;
  }

  /** Writes a copy of a message. The copy is charged to the budget until it was sent. */
  #writeCopy(bytes: Buffer): boolean {
    this.memory.growUnchecked(bytes.length);
    return this.#stream.write(bytes, () => this.memory.shrinkBy(bytes.length));
  }

  /** Resolves when the client has read everything that was sent, or will not read any more. */
  drained(): Promise<void> {
    if (this.isOver || !this.#stream.writableNeedDrain) return Promise.resolve();
    return new Promise((resolve) => {
      const settle = () => {
        this.#stream.off("drain", settle);
        this.#stream.off("close", settle);
        resolve();
      };
      this.#stream.once("drain", settle);
      this.#stream.once("close", settle);
    });
  }

  #sendResponse(): void {
    if (this.#state !== "reading") return;
    this.#state = "answering";
    this.#stream.respond(this.#responseHeaders(), respondOptions);
  }

  #responseHeaders() {
    const encoding = this.#grpcResponseEncoding;
    return {
      ":status": 200,
      "content-type": "application/grpc",
      "grpc-accept-encoding": acceptedEncodings,
      ...(encoding === "identity" ? {} : { "grpc-encoding": encoding }),
    };
  }

  /** Ends the call with a status. */
  finish(status: GrpcStatus, message = ""): void {
    if (this.isOver) return;
    const trailers: Record<string, string | number> = { "grpc-status": grpcStatus[status] };
    if (message !== "") trailers["grpc-message"] = encodeStatusMessage(message);
    const hasResponse = this.#state === "answering";
    this.#state = "finished";
    this.#deadline?.[Symbol.dispose]();
    if (!hasResponse) this.#stream.respond({ ...this.#responseHeaders(), ...trailers }, { endStream: true });
    else {
      this.#stream.once("wantTrailers", () => {
        if (!this.#stream.destroyed) this.#stream.sendTrailers(trailers);
      });
      this.#stream.end();
    }
    if (this.#stream.readableEnded) return;
    // Discards what the client still sends. Until `lingerMs` has passed, the client can read the status and stop sending by itself.
    this.#stream.removeAllListeners("data");
    this.#stream.resume();
    const linger = this.#clock.timer(lingerMs, () => this.#stream.close(constants.NGHTTP2_NO_ERROR));
    this.onClosed(() => linger[Symbol.dispose]());
  }

  fail(thrown: unknown): void {
    const { status, message } = grpcStatusOf(thrown);
    this.finish(status, message);
  }

  /** Ends the call without a status; the client sees that its connection has ended. */
  cutOff(): void {
    this.#isCutOff = true;
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #onDeadline(): void {
    const error = new GrpcError("DEADLINE_EXCEEDED", "Deadline Exceeded");
    this.fail(error);
    this.#controller.abort(error);
  }

  /**
   * Called when no byte was transferred for the stall time. Ends the call if the client should send or read. A running model may take any
   * time.
   */
  #onStall(): void {
    if (this.#stream.writableLength > 0) return this.cutOff();
    if (this.#splitter?.inMessage === true && !this.#isHeld && this.#expanding === null)
      this.fail(new GrpcError("DEADLINE_EXCEEDED", "the request message did not arrive in time"));
  }

  #onClose(): void {
    this.#closed = true;
    this.#deadline?.[Symbol.dispose]();
    if (this.#state !== "finished") this.#controller.abort(new Error("the client has cancelled the call"));
    for (const release of this.#releases) release();
    this.#releases = [];
    this.memory[Symbol.dispose]();
  }
}

function deliver(receiver: CallReceiver, message: Buffer): void {
  const sink = receiver.begin(message.length);
  if (message.length > 0) sink.write(message);
  sink.end();
}
