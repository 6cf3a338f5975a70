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
import { sendNow, SystemCallError } from "@galatea/base/system";

/** Reads happen one after another on one thread and are consumed before they return: all lanes share one buffer. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/** The other side was gone before it took what it was asked: that has not begun. */
export class LaneGone extends Error {}

/** The server's side of one lane of a runner: asks one thing at a time. Owns the descriptor. */
export class Lane {
  readonly number: number;
  /** Where its thread keeps to now. */
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

  /** `onBroken`: it is of no use any more, for its thread has ended or answers what cannot be. */
  constructor(number: number, fd: number, onBroken: (error: InferenceError) => void) {
    this.number = number;
    this.#fd = fd;
    this.#onBroken = onBroken;
    this.#socket = openDescriptorSocket(fd, readBuffer, (byteLength) => this.#receive(byteLength));
    // `close` follows. The kernel says this where the other side went with something in its socket that it had not read.
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

  /** Resolves when nothing comes from the other side any more. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Known when it is closed: the thread never took the run that it was asked for last. */
  get isUntaken(): boolean {
    return this.#isUntaken;
  }

  ask(order: LaneOrder): Promise<LaneAnswer> {
    assert(this.#answered === null, "a lane is asked one thing at a time");
    this.#asked = order.kind;
    return new Promise((resolve, reject) => {
      this.#answered = { resolve, reject };
      // A run keeps the program alive, an idle lane does not.
      this.#socket.ref();
      this.#send(this.#writer.order(order));
    });
  }

  /** The answer that is awaited will not come. */
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
      sent = sendNow(this.#fd, frame, frame.byteLength);
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

  /** An answer that did not arrive whole. */
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
    if (have > frameBytes) throw new MalformedRunFrame(`a lane answers with ${have} bytes where ${frameBytes} are due`);
    this.#partial = null;
    this.#partialBytes = 0;
    this.#answer(readAnswer(new Float64Array(grown.buffer, 0, frameBytes / wordBytes)));
  }

  #answer(answer: LaneAnswer): void {
    const answered = this.#settle();
    if (answered === null) throw new MalformedRunFrame("a lane answers what it was not asked");
    answered.resolve(answer);
  }
}
