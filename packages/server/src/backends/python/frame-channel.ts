import type { Socket } from "node:net";
import { openDescriptorSocket } from "../../native/index.ts";
import { receiveNonBlocking, sendNonBlocking, SystemCallError } from "@galatea/base/system";
import { frameBytesMax, headerBytes, MalformedRecord } from "./wire.ts";

/**
 * Shared by all channels: reads run one after another on one thread, and their data is consumed before they return. (Separate buffers of
 * 200 workers would take 13 MB.)
 */
const readBuffer = Buffer.allocUnsafeSlow(256 * 1024);

/** Maximum size of frames that are sent together; a longer frame is sent alone. */
const outgoingBytesMax = 16 * 1024;

export interface ChannelEvents {
  /**
   * Receives one complete frame, valid until the call returns. An exception closes the channel, as a MalformedRecord: the peer sent an
   * invalid frame.
   */
  onFrame(frame: Buffer): void;
  onMalformed(error: MalformedRecord): void;
  /** Called when the peer is gone, or the channel was closed here. */
  onClosed(): void;
}

/** Frames over one end of a socket pair. Owns the descriptor. */
export class FrameChannel {
  readonly #fd: number;
  readonly #socket: Socket;
  readonly #events: ChannelEvents;
  /** The beginning of an incomplete frame. */
  #partial: Buffer | null = null;
  #partialBytes = 0;
  #pendingWrites = 0;
  /** Frames to be sent at the end of this event loop tick. */
  #outgoing: Buffer | null = null;
  #outgoingBytes = 0;
  #outgoingCount = 0;
  #frameCount = 0;
  #firstLost = Number.POSITIVE_INFINITY;

  constructor(fd: number, events: ChannelEvents) {
    this.#fd = fd;
    this.#events = events;
    this.#socket = openDescriptorSocket(fd, readBuffer, (byteLength) => this.#receive(byteLength));
    this.#socket.on("error", () => {}); // A reset by a worker that ends; the `close` event follows and reports it.
    this.#socket.on("close", () => events.onClosed());
  }

  /**
   * Sends a frame together with the others of this event loop tick, at its end. Waking a sleeping worker costs more than the rest of a
   * send (a third of the server's time with three small steps and 8 clients), so it is done once for all of them. Returns the frame's
   * number.
   */
  sendSoon(frame: Uint8Array): number {
    const { byteLength } = frame;
    if (byteLength > outgoingBytesMax) return this.send(frame);
    if (this.#outgoingBytes + byteLength > outgoingBytesMax) this.#flush();
    if (this.#outgoingBytes === 0) setImmediate(() => this.#flush());
    this.#outgoing ??= Buffer.allocUnsafeSlow(outgoingBytesMax);
    this.#outgoing.set(frame, this.#outgoingBytes);
    this.#outgoingBytes += byteLength;
    this.#outgoingCount++;
    return ++this.#frameCount;
  }

  #flush(): void {
    const byteLength = this.#outgoingBytes;
    if (byteLength === 0) return;
    const first = this.#frameCount - this.#outgoingCount + 1;
    this.#outgoingBytes = this.#outgoingCount = 0;
    if (!this.#isSent(this.#outgoing!.subarray(0, byteLength))) this.#lost(first);
  }

  /**
   * Sends a frame and returns its number. The buffer may be reused when the call returns. A channel whose peer is gone ignores it:
   * `onClosed` and `firstLost` report that.
   */
  send(frame: Uint8Array): number {
    this.#flush();
    const number = ++this.#frameCount;
    if (!this.#isSent(frame)) this.#lost(number);
    return number;
  }

  /** The number of the first frame that the peer did not receive; Infinity when there is none. Later ones were not received either. */
  get firstLost(): number {
    return this.#firstLost;
  }

  #lost(number: number): void {
    this.#firstLost = Math.min(this.#firstLost, number);
  }

  /** Returns false when the peer will never read any of it. */
  #isSent(frame: Uint8Array): boolean {
    if (this.#socket.destroyed) return false;
    let sent = 0;
    if (this.#pendingWrites === 0) {
      try {
        sent = sendNonBlocking(this.#fd, frame, frame.byteLength);
      } catch (error) {
        if (error instanceof SystemCallError && (error.code === "EPIPE" || error.code === "ECONNRESET")) return false;
        throw error;
      }
      if (sent === frame.byteLength) return true;
    }
    this.#pendingWrites++;
    this.#socket.write(Buffer.from(frame.subarray(sent)), () => this.#pendingWrites--);
    return true;
  }

  /** Handles the frames that an ended process left in the socket. */
  drain(): void {
    while (!this.#socket.destroyed) {
      const byteLength = receiveNonBlocking(this.#fd, readBuffer);
      if (byteLength === 0) return;
      this.#receive(byteLength);
    }
  }

  /** Number of frames that the peer has not read yet. */
  get unsentCount(): number {
    return this.#pendingWrites;
  }

  /** Stops keeping the process alive. */
  unref(): void {
    this.#socket.unref();
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(byteLength: number): void {
    try {
      let at = 0;
      if (this.#partial !== null) at = this.#continuePartial(byteLength);
      while (this.#partial === null && at < byteLength && !this.#socket.destroyed) at = this.#takeFrame(at, byteLength);
    } catch (error) {
      this.#partial = null;
      this.close();
      this.#events.onMalformed(MalformedRecord.from(error));
    }
  }

  /** Handles the frame at `at`, or keeps its received part. */
  #takeFrame(at: number, end: number): number {
    const available = end - at;
    if (available >= headerBytes) {
      const frameBytes = checkedFrameBytes(readBuffer.readUInt32LE(at));
      if (frameBytes <= available) {
        this.#events.onFrame(readBuffer.subarray(at, at + frameBytes));
        return at + frameBytes;
      }
    }
    this.#keep(at, available);
    return end;
  }

  #keep(at: number, byteLength: number): void {
    const frameBytes = byteLength >= 4 ? checkedFrameBytes(readBuffer.readUInt32LE(at)) : headerBytes;
    this.#partial = Buffer.allocUnsafeSlow(frameBytes);
    readBuffer.copy(this.#partial, 0, at, at + byteLength);
    this.#partialBytes = byteLength;
  }

  /** Completes the kept frame from the start of the read buffer; returns the offset after it. */
  #continuePartial(end: number): number {
    let at = 0;
    for (;;) {
      const partial = this.#partial!;
      const taken = Math.min(end - at, partial.byteLength - this.#partialBytes);
      readBuffer.copy(partial, this.#partialBytes, at, at + taken);
      this.#partialBytes += taken;
      at += taken;
      if (this.#partialBytes < partial.byteLength) return at;
      const frameBytes = checkedFrameBytes(partial.readUInt32LE(0));
      if (frameBytes === partial.byteLength) {
        this.#partial = null;
        this.#events.onFrame(partial);
        return at;
      }
      // Only its first bytes had arrived, without its size.
      this.#partial = Buffer.allocUnsafeSlow(frameBytes);
      partial.copy(this.#partial);
    }
  }
}

function checkedFrameBytes(frameBytes: number): number {
  if (frameBytes < headerBytes || frameBytes > frameBytesMax)
    throw new MalformedRecord(`a frame of ${frameBytes} bytes`);
  return frameBytes;
}
