import { GrpcError } from "../grpc-listener/index.ts";

/** Wire types of protobuf fields. Groups are deprecated and rejected. */
export const wireTypes = { varint: 0, fixed64: 1, delimited: 2, fixed32: 5 } as const;

export function malformedMessageError(detail: string): GrpcError {
  return new GrpcError("INTERNAL", `the request message is not valid protobuf: ${detail}`);
}

/** Reads protobuf fields between two offsets of a buffer, without creating objects. Throws GrpcError. */
export class ProtobufReader {
  readonly bytes: Buffer;
  at: number;
  readonly end: number;
  /** Number of the field whose key was read last. */
  field = 0;
  wireType = 0;
  /** The lower and upper halves of the varint that `readVarint` has read last, as signed 32-bit integers. */
  low = 0;
  high = 0;

  constructor(bytes: Buffer, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  /** Reads the key of the next field; returns false at the end. */
  next(): boolean {
    if (this.at >= this.end) return false;
    const key = this.uint32();
    this.field = key >>> 3;
    this.wireType = key & 7;
    if (this.field === 0) throw malformedMessageError("a field has the number 0");
    return true;
  }

  /** Returns the lower 32 bits of a varint as an unsigned number. */
  uint32(): number {
    const { bytes, end } = this;
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.at >= end) throw malformedMessageError("a number is cut off");
      const byte = bytes[this.at++]!;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw malformedMessageError("a number is longer than ten bytes");
  }

  int32(): number {
    return this.uint32() | 0;
  }

  bool(): boolean {
    this.readVarint();
    return (this.low | this.high) !== 0;
  }

  uint64(): bigint {
    this.readVarint();
    return (BigInt(this.high >>> 0) << 32n) | BigInt(this.low >>> 0);
  }

  /** Reads a varint into `low` and `high`, without converting it to a number. */
  readVarint(): void {
    const { bytes, end } = this;
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.at >= end) throw malformedMessageError("a number is cut off");
      const byte = bytes[this.at++]!;
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high |= bits >>> 4;
      } else high |= bits << (shift - 32);
      if (byte >= 0x80) continue;
      this.low = low;
      this.high = high;
      return;
    }
    throw malformedMessageError("a number is longer than ten bytes");
  }

  int64(): bigint {
    return BigInt.asIntN(64, this.uint64());
  }

  /** Reads an int64 as a number. Values over 2^53 are approximate; callers reject such shapes and counts. */
  int64Number(): number {
    const { bytes } = this;
    const first = bytes[this.at];
    if (this.at < this.end && first !== undefined && first < 0x80) {
      this.at++;
      return first;
    }
    return Number(this.int64());
  }

  double(): number {
    const at = this.#take(8);
    return this.bytes.readDoubleLE(at);
  }

  /** Returns the end of a length-delimited value. The value begins at `at`. */
  delimited(): number {
    if (this.wireType !== wireTypes.delimited)
      throw malformedMessageError(`field ${this.field} is of another type than expected`);
    const length = this.uint32();
    if (length > this.end - this.at) throw malformedMessageError("a field is cut off");
    return this.at + length;
  }

  string(): string {
    const end = this.delimited();
    const text = this.bytes.toString("utf8", this.at, end);
    this.at = end;
    return text;
  }

  /** Returns a reader of a nested message, and skips the message. */
  message(): ProtobufReader {
    const end = this.delimited();
    const inner = new ProtobufReader(this.bytes, this.at, end);
    this.at = end;
    return inner;
  }

  /** Skips the value of the field whose key was read last. */
  skip(): void {
    switch (this.wireType) {
      case wireTypes.varint:
        this.readVarint();
        return;
      case wireTypes.fixed64:
        this.#take(8);
        return;
      case wireTypes.delimited:
        this.at = this.delimited();
        return;
      case wireTypes.fixed32:
        this.#take(4);
        return;
      default:
        throw malformedMessageError(`field ${this.field} has the wire type ${this.wireType}`);
    }
  }

  /** Throws when the last field has another wire type. */
  expect(wireType: number): void {
    if (this.wireType !== wireType) throw malformedMessageError(`field ${this.field} is of another type than expected`);
  }

  #take(byteLength: number): number {
    const at = this.at;
    if (byteLength > this.end - at) throw malformedMessageError("a field is cut off");
    this.at = at + byteLength;
    return at;
  }
}
