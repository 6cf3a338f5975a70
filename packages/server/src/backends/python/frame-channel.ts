import type { Socket } from "node:net";
import { openDescriptorSocket } from "../../native/index.ts";
import { receiveNonBlocking, sendNonBlocking, SystemCallError } from "@galatea/base/system";
import { frameBytesMax, headerBytes, MalformedRecord } from "./wire.ts";

/**
 * One buffer for all channels. Their reads run one after another in one thread, and the data is consumed before each read returns. Separate
 * buffers for 200 workers would use 13 MB.
 */
const readBuffer = Buffer.allocUnsafeSlow(256 * 1024);

/** Maximum total size in bytes of frames that are sent together. A longer frame is sent alone. */
const outgoingBytesMax = 16 * 1024;

export interface ChannelEvents {
  /**
   * Receives one complete frame, which is valid during the call. An exception counts as an invalid frame (MalformedRecord) and closes the
   * channel.
   */
  onFrame(frame: Buffer): void;
  onMalformed(error: MalformedRecord): void;
  /** Called when the peer has closed its socket, or after `close`. */
  onClosed(): void;
}

/** Frames over one end of a socket pair. Owns the file descriptor. */
export class FrameChannel {
  readonly #fd: number;
  readonly #socket: Socket;
  readonly #events: ChannelEvents;
  /** The received part of an incomplete frame. */
  #partial: Buffer | null = null;
  #partialBytes = 0;
  #pendingWrites = 0;
  /** Frames that are sent together at the end of this event loop tick. */
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
   * Sends a frame at the end of this event loop tick, together with other frames. Waking a sleeping worker costs more than everything else
   * in a send: a third of the server's time with three small steps and 8 clients. Returns the frame's number.
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
   * Sends a frame at once and returns the frame's number. The buffer may be reused afterwards. If the peer has closed its socket, the frame
   * is dropped, which `onClosed` and `firstLost` report.
   */
  send(frame: Uint8Array): number {
    this.#flush();
    const number = ++this.#frameCount;
    if (!this.#isSent(frame)) this.#lost(number);
    return number;
  }

  /** Number of the first frame that the peer did not receive; Infinity if there is none. The peer did not receive later frames either. */
  get firstLost(): number {
    return this.#firstLost;
  }

  #lost(number: number): void {
    this.#firstLost = Math.min(this.#firstLost, number);
  }

  /** Writes a frame. Returns false if the peer cannot receive any part of it. */
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

  /** Handles the frames that an ended process has left in the socket's receive buffer. */
  drain(): void {
    while (!this.#socket.destroyed) {
      const byteLength = receiveNonBlocking(this.#fd, readBuffer);
      if (byteLength === 0) return;
      this.#receive(byteLength);
    }
  }

  /** Number of frames that the kernel has not accepted yet, because the peer does not read. */
  get unsentCount(): number {
    return this.#pendingWrites;
  }

  /** Lets the process exit while the channel is open. */
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

  /** Handles the frame at `at`. Keeps the received bytes of an incomplete frame. */
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

  /** Completes the incomplete frame with bytes from the start of the read buffer. Returns the offset after the frame. */
  #continuePartial(end: number): number {
    let at = 0;
    for (;;) {
      const partial = this.#partial!;
      const used = Math.min(end - at, partial.byteLength - this.#partialBytes);
      readBuffer.copy(partial, this.#partialBytes, at, at + used);
      this.#partialBytes += used;
      at += used;
      if (this.#partialBytes < partial.byteLength) return at;
      const frameBytes = checkedFrameBytes(partial.readUInt32LE(0));
      if (frameBytes === partial.byteLength) {
        this.#partial = null;
        this.#events.onFrame(partial);
        return at;
      }
      // Only the first bytes of the frame had arrived before, without the frame's size.
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
