import { wireTypes } from "./protobuf-reader.ts";

/** Writes protobuf to a growing buffer, which is reused for the next message. */
export class ProtobufWriter {
  #bytes = Buffer.allocUnsafeSlow(4096);
  #at = 0;

  get byteLength(): number {
    return this.#at;
  }

  reset(): void {
    this.#at = 0;
  }

  /** Returns a copy of the bytes written since offset `from`. */
  take(from: number): Buffer {
    return Buffer.from(this.#bytes.subarray(from, this.#at));
  }

  string(field: number, text: string): void {
    if (text === "") return;
    this.key(field, wireTypes.delimited);
    const byteLength = Buffer.byteLength(text, "utf8");
    this.varint(byteLength);
    this.#room(byteLength);
    this.#bytes.write(text, this.#at, "utf8");
    this.#at += byteLength;
  }

  /** Writes a packed field of integers; an empty list is omitted. */
  packed(field: number, values: readonly number[]): void {
    if (values.length === 0) return;
    const start = this.begin(field);
    for (const value of values) this.int64(BigInt(value));
    this.end(start);
  }

  /** Writes the key and length of a field whose content is sent separately. */
  delimited(field: number, byteLength: number): void {
    this.key(field, wireTypes.delimited);
    this.varint(byteLength);
  }

  /** Begins a nested message, which ends with the call of `end`. */
  begin(field: number): number {
    this.key(field, wireTypes.delimited);
    this.#room(1);
    return ++this.#at;
  }

  end(start: number): void {
    const byteLength = this.#at - start;
    // One byte was reserved for the length; a longer length moves the message.
    let extra = 0;
    for (let rest = byteLength; rest >= 0x80; rest = Math.floor(rest / 128)) extra++;
    if (extra > 0) {
      this.#room(extra);
      this.#bytes.copyWithin(start + extra, start, this.#at);
    }
    this.#at = start - 1;
    this.varint(byteLength);
    this.#at += byteLength;
  }

  bool(field: number, value: boolean): void {
    this.key(field, wireTypes.varint);
    this.varint(value ? 1 : 0);
  }

  integer(field: number, value: bigint): void {
    this.key(field, wireTypes.varint);
    this.int64(value);
  }

  double(field: number, value: number): void {
    this.key(field, wireTypes.fixed64);
    this.#room(8);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
  }

  key(field: number, wireType: number): void {
    this.varint(field * 8 + wireType);
  }

  int64(value: bigint): void {
    if (value >= 0n && value <= 0xffffffffn) return this.varint(Number(value));
    let rest = BigInt.asUintN(64, value);
    this.#room(10);
    while (rest >= 0x80n) {
      this.#bytes[this.#at++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.#bytes[this.#at++] = Number(rest);
  }

  /** Writes a natural number up to 2^53. */
  varint(value: number): void {
    this.#room(10);
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.#at++] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    this.#bytes[this.#at++] = rest;
  }

  #room(byteLength: number): void {
    if (this.#at + byteLength <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#at + byteLength));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}
