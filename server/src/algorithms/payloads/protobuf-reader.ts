/** An integer of a protobuf message: as an unsigned number, which above 2^53 has lost digits, and its last 32 bits with their sign. */
export interface ProtobufInteger {
  readonly value: number;
  readonly int32: number;
}

/** A field of a protobuf message: its integer, or its bytes. */
export interface ProtobufField {
  readonly number: number;
  readonly wireType: number;
  readonly integer: ProtobufInteger;
  readonly bytes: Uint8Array;
}

const noBytes = new Uint8Array(0);
const noInteger: ProtobufInteger = { value: 0, int32: 0 };

/** Goes through the fields of a message. Throws RangeError where the bytes are no message. */
export function* protobufFields(bytes: Uint8Array): Generator<ProtobufField> {
  const cursor = new ProtobufCursor(bytes);
  while (!cursor.atEnd) {
    const tag = cursor.varint().value;
    const number = Math.floor(tag / 8);
    const wireType = tag % 8;
    if (number === 0) throw new RangeError("a protobuf field has number 0");
    if (wireType === 0) yield { number, wireType, integer: cursor.varint(), bytes: noBytes };
    else if (wireType === 1) yield { number, wireType, integer: noInteger, bytes: cursor.take(8) };
    else if (wireType === 2) yield { number, wireType, integer: noInteger, bytes: cursor.take(cursor.varint().value) };
    else if (wireType === 5) yield { number, wireType, integer: noInteger, bytes: cursor.take(4) };
    else throw new RangeError(`a protobuf field has wire type ${wireType}`);
  }
}

/** The integers of a repeated field, which stand behind each other in one field, or each in a field of its own. */
export function packedIntegers({ wireType, integer, bytes }: ProtobufField): ProtobufInteger[] {
  if (wireType === 0) return [integer];
  const cursor = new ProtobufCursor(bytes);
  const values: ProtobufInteger[] = [];
  while (!cursor.atEnd) values.push(cursor.varint());
  return values;
}

class ProtobufCursor {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  varint(): ProtobufInteger {
    let value = 0;
    let int32 = 0;
    let scale = 1;
    for (let count = 0; count < 10; count += 1) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw new RangeError("a protobuf message ends within a number");
      this.#at += 1;
      value += (byte & 0x7f) * scale;
      if (count < 5) int32 |= (byte & 0x7f) << (7 * count);
      if (byte < 0x80) return { value, int32 };
      scale *= 128;
    }
    throw new RangeError("a protobuf number has more than ten bytes");
  }

  take(byteLength: number): Uint8Array {
    if (!(byteLength <= this.#bytes.length - this.#at)) {
      throw new RangeError(`a protobuf message ends before the ${byteLength} bytes that it announces`);
    }
    const taken = this.#bytes.subarray(this.#at, this.#at + byteLength);
    this.#at += byteLength;
    return taken;
  }
}
