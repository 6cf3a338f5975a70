export const frameTypes = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, windowUpdate: 8 } as const;
export const frameFlags = { endStream: 1, ack: 1, endHeaders: 4 } as const;
export const settingIds = { headerTableBytes: 1, initialWindowBytes: 4, frameBytesMax: 5 } as const;
export const frameHeadBytes = 9;
/** HTTP/2's defaults before any SETTINGS frame. */
export const defaultFrameBytesMax = 16 * 1024;
export const defaultWindowBytes = 65_535;
export const windowBytesMax = 2 ** 31 - 1;
/** Payload limit of frames that are buffered: all except DATA and HEADERS frames. */
const controlBytesMax = 16 * 1024;

export function frameOf(type: number, flags: number, stream: number, content: Uint8Array): Buffer {
  const head = Buffer.alloc(frameHeadBytes);
  head.writeUIntBE(content.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, content]);
}

export function windowUpdate(stream: number, byteLength: number): Buffer {
  const content = Buffer.alloc(4);
  content.writeUInt32BE(byteLength);
  return frameOf(frameTypes.windowUpdate, 0, stream, content);
}

/** Opens a connection without a header table, and with windows that a run rarely fills. */
export const clientPreface = (() => {
  const settings = Buffer.alloc(12);
  settings.writeUInt16BE(settingIds.headerTableBytes, 0);
  settings.writeUInt32BE(0, 2);
  settings.writeUInt16BE(settingIds.initialWindowBytes, 6);
  settings.writeUInt32BE(windowBytesMax, 8);
  return Buffer.concat([
    Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1"),
    frameOf(frameTypes.settings, 0, 0, settings),
    windowUpdate(0, windowBytesMax - defaultWindowBytes),
  ]);
})();

/** The entries of a SETTINGS frame. */
export function* settingsOf(content: Buffer): Generator<readonly [id: number, value: number]> {
  for (let at = 0; at + 6 <= content.length; at += 6) yield [content.readUInt16BE(at), content.readUInt32BE(at + 2)];
}

export interface ControlFrame {
  readonly type: number;
  readonly flags: number;
  /** 0: of the connection. */
  readonly stream: number;
  readonly content: Buffer;
}

export interface FrameEvents {
  /** Some bytes of a DATA frame, valid until the call returns. */
  data(chunk: Buffer): void;
  /** The payload of a frame other than DATA or HEADERS. */
  control(frame: ControlFrame): void;
  /** The end of a DATA or HEADERS frame, and whether it ends its stream. */
  streamEnded(): void;
}

/** Reads frames from a reused buffer. Bytes of DATA are passed on as they arrive, and those of HEADERS are dropped. */
export class FrameReader {
  readonly #events: FrameEvents;
  readonly #head = Buffer.alloc(frameHeadBytes);
  #headAt = 0;
  #missing = 0;
  #content: Buffer = Buffer.alloc(0);

  constructor(events: FrameEvents) {
    this.#events = events;
  }

  push(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#headAt < frameHeadBytes) {
        const used = bytes.copy(this.#head, this.#headAt, at);
        this.#headAt += used;
        at += used;
        if (this.#headAt === frameHeadBytes) this.#begin();
        continue;
      }
      const chunk = bytes.subarray(at, at + this.#missing);
      if (this.#head[3] === frameTypes.data) this.#events.data(chunk);
      else if (this.#head[3] !== frameTypes.headers) chunk.copy(this.#content, this.#content.length - this.#missing);
      at += chunk.length;
      this.#missing -= chunk.length;
      if (this.#missing === 0) this.#end();
    }
  }

  #begin(): void {
    this.#missing = this.#head.readUIntBE(0, 3);
    const type = this.#head[3]!;
    if (type !== frameTypes.data && type !== frameTypes.headers) {
      if (this.#missing > controlBytesMax) throw new Error(`a frame of type ${type} has ${this.#missing} bytes`);
      this.#content = Buffer.alloc(this.#missing);
    }
    if (this.#missing === 0) this.#end();
  }

  #end(): void {
    this.#headAt = 0;
    const [type, flags] = [this.#head[3]!, this.#head[4]!];
    if (type !== frameTypes.data && type !== frameTypes.headers)
      this.#events.control({ type, flags, stream: this.#head.readUInt32BE(5), content: this.#content });
    else if ((flags & frameFlags.endStream) !== 0) this.#events.streamEnded();
  }
}
