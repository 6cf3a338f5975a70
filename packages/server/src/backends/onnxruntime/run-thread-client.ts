import type { Socket } from "node:net";
import { assert, InferenceError } from "@galatea/base";
import {
  frameByteLength,
  FrameWriter,
  type RunThreadResult,
  type RunThreadCommand,
  MalformedRunFrame,
  openDescriptorSocket,
  readRunThreadResult,
  wordBytes,
} from "../../native/index.ts";
import { sendNonBlocking, SystemCallError } from "@galatea/base/system";

/** One buffer for all run threads. Their reads run one after another in one thread, and the data is consumed before each read returns. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/** The error of a run that was not started, because the runner's thread had ended before it received the command. */
export class RunThreadEnded extends Error {}

/** The server's side of a run thread, which belongs to a runner process. Sends one command at a time. Owns the file descriptor. */
export class RunThreadClient {
  readonly number: number;
  /** Processors to which the run thread is pinned. */
  processors: readonly number[] = [];
  readonly #fd: number;
  readonly #socket: Socket;
  readonly #writer = new FrameWriter();
  readonly #onBroken: (error: InferenceError) => void;
  readonly #closed = Promise.withResolvers<void>();
  #pendingKind: RunThreadCommand["kind"] | null = null;
  #isUnread = false;
  #pending: { resolve: (result: RunThreadResult) => void; reject: (error: Error) => void } | null = null;
  #partial: Buffer | null = null;
  #partialBytes = 0;

  /** `onBroken` is called when the run thread is unusable: it has ended or has sent an invalid result. */
  constructor(number: number, fd: number, onBroken: (error: InferenceError) => void) {
    this.number = number;
    this.#fd = fd;
    this.#onBroken = onBroken;
    this.#socket = openDescriptorSocket(fd, readBuffer, (byteLength) => this.#receive(byteLength));
    // Ignored: the `close` event follows. The kernel reports ECONNRESET when the peer ended with unread data in its socket.
    this.#socket.on("error", ({ code }: NodeJS.ErrnoException) => {
      this.#isUnread ||= code === "ECONNRESET" && this.#pendingKind === "run";
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
  get isUnread(): boolean {
    return this.#isUnread;
  }

  execute(command: RunThreadCommand): Promise<RunThreadResult> {
    assert(this.#pending === null, "a run thread executes one command at a time");
    this.#pendingKind = command.kind;
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      // A run thread keeps the process alive only during a run.
      this.#socket.ref();
      this.#send(this.#writer.command(command));
    });
  }

  /** Rejects the pending run. */
  fail(error: Error): void {
    this.#takePending()?.reject(error);
  }

  close(): void {
    this.#socket.destroy();
  }

  #takePending() {
    const pending = this.#pending;
    this.#pending = null;
    this.#socket.unref();
    return pending;
  }

  #send(frame: Uint8Array): void {
    let sent = 0;
    try {
      sent = sendNonBlocking(this.#fd, frame, frame.byteLength);
    } catch (error) {
      if (!(error instanceof SystemCallError)) throw error;
      return this.fail(new RunThreadEnded(error.message));
    }
    if (sent < frame.byteLength) this.#socket.write(Buffer.from(frame.subarray(sent)));
  }

  #receive(byteLength: number): void {
    try {
      this.#readFrame(byteLength);
    } catch (error) {
      if (!(error instanceof MalformedRunFrame)) throw error;
      this.#onBroken(new InferenceError("INTERNAL", error.message));
    }
  }

  #readFrame(byteLength: number): void {
    if (this.#partial === null && byteLength >= wordBytes) {
      const frameBytes = frameByteLength(readBuffer.readDoubleLE(0));
      if (frameBytes === byteLength) {
        this.#resolve(readRunThreadResult(new Float64Array(readBuffer.buffer, 0, byteLength / wordBytes)));
        return;
      }
    }
    this.#keepPartial(byteLength);
  }

  /** Keeps the first bytes of an incomplete result until the remaining bytes arrive. */
  #keepPartial(byteLength: number): void {
    const have = this.#partialBytes + byteLength;
    const grown = Buffer.allocUnsafeSlow(have);
    this.#partial?.copy(grown);
    readBuffer.copy(grown, this.#partialBytes, 0, byteLength);
    this.#partial = grown;
    this.#partialBytes = have;
    if (have < wordBytes) return;
    const frameBytes = frameByteLength(grown.readDoubleLE(0));
    if (have < frameBytes) return;
    if (have > frameBytes)
      throw new MalformedRunFrame(`a run thread responds with ${have} bytes instead of ${frameBytes}`);
    this.#partial = null;
    this.#partialBytes = 0;
    this.#resolve(readRunThreadResult(new Float64Array(grown.buffer, 0, frameBytes / wordBytes)));
  }

  #resolve(result: RunThreadResult): void {
    const pending = this.#takePending();
    if (pending === null) throw new MalformedRunFrame("a run thread responds without a command");
    pending.resolve(result);
  }
}
