import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { ByteLease, type ByteBudget, type Clock, type Semaphore } from "@galatea/base";
import { InflationSlot } from "../inflation-slot.ts";
import { GatheredMessage } from "./gathered-message.ts";
import { parseGrpcTimeout } from "./grpc-timeout.ts";
import type { GrpcLimits } from "./limits.ts";
import {
  acceptedEncodings,
  compressMessage,
  expandMessage,
  messageEncoding,
  answerEncoding,
  type CompressionLevel,
  type MessageEncoding,
} from "./message-compression.ts";
import { MessageSplitter, prefixBytes, writePrefix, type MessageSink } from "./message-splitter.ts";
import type { ReadMemory } from "./read-memory.ts";
import { encodeStatusMessage, GrpcError, grpcStatus, grpcStatusOf, type GrpcStatus } from "./status.ts";

/** Receives the client's messages of a call. An exception ends the call with that error's status. */
export interface CallReceiver {
  /** Called when a message of `byteLength` bytes begins. */
  begin(byteLength: number): MessageSink;
  /** Called when the client has sent its last message, and all of them have ended. */
  halfClosed(): void;
}

export interface CallOptions {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly limits: GrpcLimits;
  readonly compressionLevel: CompressionLevel;
  readonly clock: Clock;
  /** Budget for messages in flight. */
  readonly budget: ByteBudget;
  /** The memory into which the call's connection is read. */
  readonly reads: ReadMemory;
  /** See InflationSlot. */
  readonly inflations: Semaphore;
}

/** Messages up to this size are joined into one buffer: cheaper than several writes. */
const joinedBytesMax = 16 * 1024;
/**
 * Estimated memory of a call besides its messages: objects of Node and the server, metadata. Counted, but never a reason to reject it.
 */
const callBytes = 4 * 1024;
/** gRPC's core sends no date. */
const respondOptions = { waitForTrailers: true, sendDate: false };
/** Time for which a client may continue to send after its call has ended. */
const lingerMs = 2000;

/**
 * One call: messages in both directions, one status at the end. `signal` aborts when nothing waits for it any more: the client has
 * cancelled or gone, its deadline has passed, or the server ends it without a status.
 */
export class Call {
  readonly headers: IncomingHttpHeaders;
  /** The call's lease of the memory for requests in flight; released when no bytes of the call are in flight any more. */
  readonly memory: ByteLease;
  /** The call's deadline from its client; null without one. */
  readonly timeoutMs: number | null;
  readonly #stream: ServerHttp2Stream;
  readonly #limits: GrpcLimits;
  readonly #clock: Clock;
  readonly #reads: ReadMemory;
  readonly #inflations: Semaphore;
  readonly #controller = new AbortController();
  readonly #compressionLevel: CompressionLevel;
  readonly #requestEncoding: MessageEncoding | null;
  readonly #answerEncoding: MessageEncoding;
  readonly #deadline: Disposable | null;
  #splitter: MessageSplitter | null = null;
  /** Messages that are being decompressed, followed by later ones, in order. */
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
    this.#answerEncoding = answerEncoding(headers["grpc-accept-encoding"] as string | undefined, compressionLevel);
    this.timeoutMs = parseGrpcTimeout(headers["grpc-timeout"] as string | undefined);
    this.#deadline = this.timeoutMs === null ? null : clock.timer(this.timeoutMs, () => this.#onDeadline());
    stream.once("close", () => this.#onClose());
    // `close` reports it too; without a listener it would end the process.
    stream.on("error", () => {});
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** True when the status has been sent, or cannot be sent any more. */
  get isOver(): boolean {
    // The stream reports its end one tick late. A stream that its client ended without an error is closed, and not destroyed while it has
    // unread bytes.
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

  /** Stops reading from the client until `resume`: flow control stops the client. */
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

  /** Collects a message that is compressed, or follows one; it is decompressed in the thread pool, then passed on in one chunk. */
  #gather(receiver: CallReceiver, byteLength: number, compressed: boolean): MessageSink {
    const packed = new GatheredMessage(byteLength, this.memory);
    return {
      write: (chunk) => packed.write(chunk),
      end: () => {
        // One at a time: a client cannot have many messages decompressed at once.
        this.#stream.pause();
        const before = this.#expanding ?? Promise.resolve();
        const expanding: Promise<void> = before.then(async () => {
          await this.#handOn(receiver, packed, compressed);
          if (this.#expanding !== expanding) return;
          this.#expanding = null;
          if (!this.#isHeld) this.#stream.resume();
        });
        this.#expanding = expanding;
      },
    };
  }

  async #handOn(receiver: CallReceiver, packed: GatheredMessage, compressed: boolean): Promise<void> {
    const { messageBytesMax } = this.#limits;
    const { memory } = this;
    using slot = new InflationSlot(this.#inflations, this.signal);
    try {
      const encoding = this.#requestEncoding ?? "identity";
      const bounds = { messageBytesMax, memory, slot };
      const message = compressed ? await expandMessage(packed.bytes, encoding, bounds) : packed;
      if (message !== packed) memory.shrinkBy(packed.heldBytes);
      this.#guard(() => handOn(receiver, message.bytes));
      memory.shrinkBy(message.heldBytes);
    } catch (error) {
      this.fail(error);
    }
  }

  /**
   * Sends one message of these chunks, which must not change until `sent` is called, once in every outcome. Returns false when the client
   * reads too slowly: wait for `drained`.
   */
  send(pieces: readonly Uint8Array[], sent: () => void): boolean {
    if (this.isOver) {
      sent();
      return true;
    }
    let byteLength = 0;
    for (const piece of pieces) byteLength += piece.byteLength;
    if (byteLength > this.#limits.messageBytesMax) {
      sent();
      throw new GrpcError(
        "INTERNAL",
        `Response has byte size ${byteLength} which exceeds gRPC's byte size limit ${this.#limits.messageBytesMax}.`,
      );
    }
    this.#answer();
    return this.#write(pieces, byteLength, sent);
  }

  /** Sends a message as `send` does, compressed if the client accepts it and the server is configured to. */
  async sendCompressed(pieces: readonly Uint8Array[], sent: () => void): Promise<boolean> {
    const encoding = this.#answerEncoding;
    if (encoding === "identity") return this.send(pieces, sent);
    let packed: Buffer;
    try {
      packed = await compressMessage(pieces, encoding, this.#compressionLevel);
    } finally {
      sent();
    }
    if (this.isOver) return true;
    this.#answer();
    const prefix = Buffer.allocUnsafe(prefixBytes);
    writePrefix(prefix, packed.length, true);
    this.#writeCopy(prefix);
    return this.#writeCopy(packed);
  }

  #write(pieces: readonly Uint8Array[], byteLength: number, sent: () => void): boolean {
    const stream = this.#stream;
    if (byteLength <= joinedBytesMax) {
      const whole = Buffer.allocUnsafe(prefixBytes + byteLength);
      writePrefix(whole, byteLength, false);
      let at = prefixBytes;
      for (const piece of pieces) {
        whole.set(piece, at);
        at += piece.byteLength;
      }
      sent();
      return this.#writeCopy(whole);
    }
    const prefix = Buffer.allocUnsafe(prefixBytes);
    writePrefix(prefix, byteLength, false);
    stream.cork();
    stream.write(prefix);
    let taken = true;
    for (const [index, piece] of pieces.entries())
      taken = index === pieces.length - 1 ? stream.write(piece, () => sent()) : stream.write(piece);
    stream.uncork();
    return taken;
  }

  /** Writes bytes of a separate copy: counted until they were sent. */
  #writeCopy(bytes: Buffer): boolean {
    this.memory.growUnchecked(bytes.length);
    return this.#stream.write(bytes, () => this.memory.shrinkBy(bytes.length));
  }

  /** Resolves when the client has read everything sent, or does not read any more. */
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

  #answer(): void {
    if (this.#state !== "reading") return;
    this.#state = "answering";
    this.#stream.respond(this.#responseHeaders(), respondOptions);
  }

  #responseHeaders() {
    const encoding = this.#answerEncoding;
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
    const answered = this.#state === "answering";
    this.#state = "finished";
    this.#deadline?.[Symbol.dispose]();
    if (!answered) this.#stream.respond({ ...this.#responseHeaders(), ...trailers }, { endStream: true });
    else {
      this.#stream.once("wantTrailers", () => {
        if (!this.#stream.destroyed) this.#stream.sendTrailers(trailers);
      });
      this.#stream.end();
    }
    if (this.#stream.readableEnded) return;
    // Discards what the client still sends; it has a moment to read the status and stop by itself.
    this.#stream.removeAllListeners("data");
    this.#stream.resume();
    const linger = this.#clock.timer(lingerMs, () => this.#stream.close(constants.NGHTTP2_NO_ERROR));
    this.onClosed(() => linger[Symbol.dispose]());
  }

  fail(thrown: unknown): void {
    const { status, message } = grpcStatusOf(thrown);
    this.finish(status, message);
  }

  /** Ends the call without a status: the client sees the end of its connection. */
  cutOff(): void {
    this.#isCutOff = true;
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #onDeadline(): void {
    const error = new GrpcError("DEADLINE_EXCEEDED", "Deadline Exceeded");
    this.fail(error);
    this.#controller.abort(error);
  }

  /** Called when no byte has moved for the stall time. A running model may take any time; a client may not. */
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

function handOn(receiver: CallReceiver, message: Buffer): void {
  const sink = receiver.begin(message.length);
  if (message.length > 0) sink.write(message);
  sink.end();
}
