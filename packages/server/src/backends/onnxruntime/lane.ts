import type { Socket } from "node:net";
import { assert, InferenceError } from "@galatea/base";
import {
  frameByteLength,
  FrameWriter,
  type LaneResult,
  type LaneCommand,
  MalformedRunFrame,
  openDescriptorSocket,
  readLaneResult,
  wordBytes,
} from "../../native/index.ts";
import { sendNonBlocking, SystemCallError } from "@galatea/base/system";

/** One buffer for all lanes: their reads run one after another in one thread, and the data is consumed before each read returns. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/** The error of a run that was not started, because the runner's thread had ended before it received the command. */
export class LaneEnded extends Error {}

/** The server's side of one run lane (a thread in a runner process). Sends one command at a time. Owns the file descriptor. */
export class Lane {
  readonly number: number;
  /** Processors to which the lane's thread is pinned. */
  processors: readonly number[] = [];
  readonly #fd: number;
  readonly #socket: Socket;
  readonly #writer = new FrameWriter();
  readonly #onBroken: (error: InferenceError) => void;
  readonly #closed = Promise.withResolvers<void>();
  #asked: LaneCommand["kind"] | null = null;
  #isUntaken = false;
  #answered: { resolve: (answer: LaneResult) => void; reject: (error: Error) => void } | null = null;
  #partial: Buffer | null = null;
  #partialBytes = 0;

  /** `onBroken` is called when the lane is unusable: its thread has ended or has sent an invalid result. */
  constructor(number: number, fd: number, onBroken: (error: InferenceError) => void) {
    this.number = number;
    this.#fd = fd;
    this.#onBroken = onBroken;
    this.#socket = openDescriptorSocket(fd, readBuffer, (byteLength) => this.#receive(byteLength));
    // Ignored: the `close` event follows. The kernel reports ECONNRESET when the peer ended with unread data in its socket.
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

  /** Resolves when no more data can arrive from the thread. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Valid after `closed`: true if the thread never received the last command. */
  get isUntaken(): boolean {
    return this.#isUntaken;
  }

  ask(order: LaneCommand): Promise<LaneResult> {
    assert(this.#answered === null, "a lane runs one request at a time");
    this.#asked = order.kind;
    return new Promise((resolve, reject) => {
      this.#answered = { resolve, reject };
      // A lane keeps the process alive only during a run.
      this.#socket.ref();
      this.#send(this.#writer.order(order));
    });
  }

  /** Rejects the pending run. */
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
      return this.fail(new LaneEnded(error.message));
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
      const frameBytes = frameByteLength(readBuffer.readDoubleLE(0));
      if (frameBytes === byteLength) {
        this.#answer(readLaneResult(new Float64Array(readBuffer.buffer, 0, byteLength / wordBytes)));
        return;
      }
    }
    this.#keep(byteLength);
  }

  /** Stores the beginning of an incomplete result. */
  #keep(byteLength: number): void {
    const have = this.#partialBytes + byteLength;
    const grown = Buffer.allocUnsafeSlow(have);
    this.#partial?.copy(grown);
    readBuffer.copy(grown, this.#partialBytes, 0, byteLength);
    this.#partial = grown;
    this.#partialBytes = have;
    if (have < wordBytes) return;
    const frameBytes = frameByteLength(grown.readDoubleLE(0));
    if (have < frameBytes) return;
    if (have > frameBytes) throw new MalformedRunFrame(`a lane responds with ${have} bytes instead of ${frameBytes}`);
    this.#partial = null;
    this.#partialBytes = 0;
    this.#answer(readLaneResult(new Float64Array(grown.buffer, 0, frameBytes / wordBytes)));
  }

  #answer(answer: LaneResult): void {
    const answered = this.#settle();
    if (answered === null) throw new MalformedRunFrame("a lane responds to no request");
    answered.resolve(answer);
  }
}
