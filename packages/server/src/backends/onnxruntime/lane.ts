import type { Socket } from "node:net";
import { assert, InferenceError } from "@galatea/base";
import {
  frameBytesOf,
  FrameWriter,
  type LaneAnswer,
  type LaneOrder,
  MalformedRunFrame,
  openDescriptorSocket,
  readAnswer,
  wordBytes,
} from "../../native/index.ts";
import { sendNonBlocking, SystemCallError } from "@galatea/base/system";

/** Shared by all lanes: reads run one after another on one thread, and their data is consumed before they return. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/** The peer was gone before it took the last order, which therefore was not started. */
export class LaneGone extends Error {}

/** The server's side of one lane of a runner: sends one order at a time. Owns the descriptor. */
export class Lane {
  readonly number: number;
  /** Processors to which its thread is pinned now. */
  processors: readonly number[] = [];
  readonly #fd: number;
  readonly #socket: Socket;
  readonly #writer = new FrameWriter();
  readonly #onBroken: (error: InferenceError) => void;
  readonly #closed = Promise.withResolvers<void>();
  #asked: LaneOrder["kind"] | null = null;
  #isUntaken = false;
  #answered: { resolve: (answer: LaneAnswer) => void; reject: (error: Error) => void } | null = null;
  #partial: Buffer | null = null;
  #partialBytes = 0;

  /** `onBroken`: called when the lane is unusable, because its thread has ended or has sent an invalid response. */
  constructor(number: number, fd: number, onBroken: (error: InferenceError) => void) {
    this.number = number;
    this.#fd = fd;
    this.#onBroken = onBroken;
    this.#socket = openDescriptorSocket(fd, readBuffer, (byteLength) => this.#receive(byteLength));
    // The `close` event follows. The kernel reports this error when the peer ended with unread data in its socket.
    this.#socket.on("error", ({ code }: NodeJS.ErrnoException) => {
      this.#isUntaken ||= code === "ECONNRESET" && this.#asked === "run";
    });
    this.#socket.on("end", () => this.#socket.destroy());
    this.#socket.on("close", () => {
      this.#closed.resolve();
      this.#onBroken(new InferenceError("INTERNAL", "a thread that runs models has ended"));
    });
    this.#socket.unref();
  }

  /** Resolves when nothing more comes from the peer. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Valid after `closed`: true if the thread never took the last run. */
  get isUntaken(): boolean {
    return this.#isUntaken;
  }

  ask(order: LaneOrder): Promise<LaneAnswer> {
    assert(this.#answered === null, "a lane runs one request at a time");
    this.#asked = order.kind;
    return new Promise((resolve, reject) => {
      this.#answered = { resolve, reject };
      // A run keeps the process alive, an idle lane does not.
      this.#socket.ref();
      this.#send(this.#writer.order(order));
    });
  }

  /** Fails the pending order. */
  fail(error: Error): void {
    this.#settle()?.reject(error);
  }

  close(): void {
    this.#socket.destroy();
  }

  #settle() {
    const answered = this.#answered;
    this.#answered = null;
    this.#socket.unref();
    return answered;
  }

  #send(frame: Uint8Array): void {
    let sent = 0;
    try {
      sent = sendNonBlocking(this.#fd, frame, frame.byteLength);
    } catch (error) {
      if (!(error instanceof SystemCallError)) throw error;
      return this.fail(new LaneGone(error.message));
    }
    if (sent < frame.byteLength) this.#socket.write(Buffer.from(frame.subarray(sent)));
  }

  #receive(byteLength: number): void {
    try {
      this.#take(byteLength);
    } catch (error) {
      if (!(error instanceof MalformedRunFrame)) throw error;
      this.#onBroken(new InferenceError("INTERNAL", error.message));
    }
  }

  #take(byteLength: number): void {
    if (this.#partial === null && byteLength >= wordBytes) {
      const frameBytes = frameBytesOf(readBuffer.readDoubleLE(0));
      if (frameBytes === byteLength) {
        this.#answer(readAnswer(new Float64Array(readBuffer.buffer, 0, byteLength / wordBytes)));
        return;
      }
    }
    this.#keep(byteLength);
  }

  /** Keeps the beginning of an incomplete response. */
  #keep(byteLength: number): void {
    const have = this.#partialBytes + byteLength;
    const grown = Buffer.allocUnsafeSlow(have);
    this.#partial?.copy(grown);
    readBuffer.copy(grown, this.#partialBytes, 0, byteLength);
    this.#partial = grown;
    this.#partialBytes = have;
    if (have < wordBytes) return;
    const frameBytes = frameBytesOf(grown.readDoubleLE(0));
    if (have < frameBytes) return;
    if (have > frameBytes) throw new MalformedRunFrame(`a lane responds with ${have} bytes instead of ${frameBytes}`);
    this.#partial = null;
    this.#partialBytes = 0;
    this.#answer(readAnswer(new Float64Array(grown.buffer, 0, frameBytes / wordBytes)));
  }

  #answer(answer: LaneAnswer): void {
    const answered = this.#settle();
    if (answered === null) throw new MalformedRunFrame("a lane responds to no request");
    answered.resolve(answer);
  }
}
