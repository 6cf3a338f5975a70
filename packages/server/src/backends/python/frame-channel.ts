import type { Socket } from "node:net";
import { openDescriptorSocket } from "../../native/index.ts";
import { receiveNow, sendNow, SystemCallError } from "@galatea/base/system";
import { frameBytesMax, headerBytes, MalformedRecord } from "./wire.ts";

/**
 * Reads happen one after another on one thread and are consumed before they return: all channels share one buffer.
 * (200 workers with buffers of their own would hold 13 MB for nothing.)
 */
const readBuffer = Buffer.allocUnsafeSlow(256 * 1024);

/** Frames that leave together; a longer one leaves alone. */
const outgoingBytesMax = 16 * 1024;

export interface ChannelEvents {
  /** One whole frame, good until the call returns. Whatever is thrown closes the channel, as a MalformedRecord: what the other side sent. */
  onFrame(frame: Buffer): void;
  onMalformed(error: MalformedRecord): void;
  /** The other side is gone, or the channel was closed here. */
  onClosed(): void;
}

/** Frames over one end of a socket pair. Owns the descriptor. */
export class FrameChannel {
  readonly #fd: number;
  readonly #socket: Socket;
  readonly #events: ChannelEvents;
  /** The beginning of a frame that has not arrived whole. */
  #partial: Buffer | null = null;
  #partialBytes = 0;
  #pendingWrites = 0;
  /** Frames that leave at the end of this turn. */
  #outgoing: Buffer | null = null;
  #outgoingBytes = 0;
  #outgoingCount = 0;
  #frameCount = 0;
  #firstLost = Number.POSITIVE_INFINITY;

  constructor(fd: number, events: ChannelEvents) {
    this.#fd = fd;
    this.#events = events;
    this.#socket = openDescriptorSocket(fd, readBuffer, (byteLength) => this.#receive(byteLength));
    this.#socket.on("error", () => {}); // A reset by a dying worker; `close` follows and says it.
    this.#socket.on("close", () => events.onClosed());
  }

  /**
   * Sends a frame together with the others of this turn of the event loop, at its end. Waking a sleeping worker costs more than all
   * else in a send (a third of the server's time with three small steps and 8 clients), so it is done once for all of them.
   * Returns the frame's number.
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
   * Sends a frame and returns its number. The buffer is free again when the call returns. A channel whose other side is gone takes it in
   * silence: `onClosed` tells, and `firstLost`.
   */
  send(frame: Uint8Array): number {
    this.#flush();
    const number = ++this.#frameCount;
    if (!this.#isSent(frame)) this.#lost(number);
    return number;
  }

  /** The number of the first frame that found nobody at the other side; Infinity where there is none. No later one was read either. */
  get firstLost(): number {
    return this.#firstLost;
  }

  #lost(number: number): void {
    this.#firstLost = Math.min(this.#firstLost, number);
  }

  /** False where nothing of it will ever be read. */
  #isSent(frame: Uint8Array): boolean {
    if (this.#socket.destroyed) return false;
    let sent = 0;
    if (this.#pendingWrites === 0) {
      try {
        sent = sendNow(this.#fd, frame, frame.byteLength);
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

  /** Takes the frames that a process which has ended left in the socket. */
  drain(): void {
    while (!this.#socket.destroyed) {
      const byteLength = receiveNow(this.#fd, readBuffer);
      if (byteLength === 0) return;
      this.#receive(byteLength);
    }
  }

  /** Frames that the other side leaves in the way of those behind them. */
  get unsentCount(): number {
    return this.#pendingWrites;
  }

  /** Does not keep the program alive by itself. */
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

  /** Handles the frame at `at`, or keeps what there is of it. */
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

  /** Completes the kept frame from the start of the read buffer; returns how far it reached. */
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
