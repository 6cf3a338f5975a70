import { assert } from "@galatea/base";
import {
  allOutputs,
  correlationTextBytesMax,
  executeHeadBytes,
  frameBytesMax,
  headerBytes,
  inputsMax,
  kinds,
  lentBytes,
  requestBytes,
  tensorBytes,
  type WireExecute,
  type WireLent,
  type WireRequest,
  type WireTensor,
  writeLent,
  writeNatural,
  writeTensor,
} from "./wire.ts";

const firstBufferBytes = 64 * 1024;
/** Maximum size in bytes of a buffer that is kept. A buffer that has grown larger for one frame is replaced. */
const keptBufferBytesMax = 4 * 1024 * 1024;

/** Encodes EXECUTE frames into one buffer. A frame is valid until the next call. */
export class ExecuteEncoder {
  #buffer = Buffer.allocUnsafeSlow(firstBufferBytes);
  #view = new DataView(this.#buffer.buffer);
  #at = 0;
  #inlineBytes = 0;
  #inline: { readonly at: number; readonly data: Uint8Array }[] = [];

  /** Encodes an EXECUTE frame. The requests must fit into one frame, which `planFrames` ensures. */
  encode(execute: WireExecute): Buffer {
    const { loans, spaces, requests } = execute;
    if (this.#buffer.byteLength > keptBufferBytesMax) this.#renew(Buffer.allocUnsafeSlow(firstBufferBytes));
    this.#at = headerBytes + executeHeadBytes;
    this.#inlineBytes = 0;
    this.#inline.length = 0;
    this.#reserve((loans.length + spaces.length) * lentBytes);
    for (const lent of loans) this.#writeLent(lent);
    for (const lent of spaces) this.#writeLent(lent);
    for (const request of requests) this.#writeRequest(request);
    const inlineOffset = (this.#at + 15) & ~15;
    this.#reserve(16 + this.#inlineBytes);
    if (this.#inlineBytes === 0) this.#buffer.fill(0, this.#at, inlineOffset);
    // Gaps are zeroed, because the buffer still contains bytes of earlier frames, possibly of another tenant.
    let end = this.#at;
    for (const chunk of this.#inline) {
      const at = inlineOffset + chunk.at;
      this.#buffer.fill(0, end, at);
      this.#buffer.set(chunk.data, at);
      end = at + chunk.data.byteLength;
    }
    this.#buffer.fill(0, end, inlineOffset + this.#inlineBytes);
    // Drops the references to the requests' bytes, which would otherwise stay in memory until the next call.
    this.#inline.length = 0;
    const frameBytes = inlineOffset + this.#inlineBytes;
    assert(frameBytes <= frameBytesMax, "an EXECUTE frame within its limit");
    const view = this.#view;
    view.setUint32(0, frameBytes, true);
    view.setUint16(4, kinds.execute, true);
    view.setUint16(6, requests.length, true);
    view.setUint32(8, execute.executionId, true);
    view.setUint32(12, execute.nextIsNear ? 1 : 0, true);
    view.setUint32(16, loans.length, true);
    view.setUint32(20, spaces.length, true);
    view.setUint32(24, inlineOffset, true);
    view.setUint32(28, 0, true);
    return this.#buffer.subarray(0, frameBytes);
  }

  #reserve(byteLength: number): void {
    const needed = this.#at + byteLength;
    if (needed <= this.#buffer.byteLength) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.byteLength * 2));
    grown.set(this.#buffer.subarray(0, this.#at));
    this.#renew(grown);
  }

  #renew(buffer: Buffer<ArrayBuffer>): void {
    this.#buffer = buffer;
    this.#view = new DataView(buffer.buffer);
  }

  #writeLent(lent: WireLent): void {
    writeLent(this.#view, this.#at, lent);
    this.#at += lentBytes;
  }

  #writeRequest(request: WireRequest): void {
    const idBytes = request.requestId === "" ? 0 : Buffer.byteLength(request.requestId);
    const parametersBytes = request.parametersJson === "" ? 0 : Buffer.byteLength(request.parametersJson);
    const text = typeof request.correlation === "string" ? request.correlation : "";
    const textBytes = text === "" ? 0 : Buffer.byteLength(text);
    assert(
      textBytes <= correlationTextBytesMax && request.inputs.length <= inputsMax,
      "a request within the wire's counts",
    );
    const requested = request.requested;
    this.#reserve(requestBytes + (requested?.length ?? 0) * 2 + idBytes + textBytes + parametersBytes + 8);
    const view = this.#view;
    const at = this.#at;
    view.setUint16(at, request.inputs.length, true);
    view.setUint16(at + 2, requested === null ? allOutputs : requested.length, true);
    view.setUint16(at + 4, textBytes, true);
    view.setUint16(at + 6, 0, true);
    view.setUint32(at + 8, idBytes, true);
    view.setUint32(at + 12, parametersBytes, true);
    view.setUint32(at + 16, request.flags, true);
    view.setUint32(at + 20, 0, true);
    if (typeof request.correlation === "bigint" && request.correlation !== 0n)
      view.setBigUint64(at + 24, request.correlation, true);
    else writeNatural(view, at + 24, 0);
    // Values from 2^64 on come from a negative number, such as -1, that was converted to 64 bits and rounded up.
    if (request.timeoutUs >= 2 ** 64) view.setBigUint64(at + 32, 2n ** 64n - 1n, true);
    else writeNatural(view, at + 32, request.timeoutUs);
    this.#at += requestBytes;
    for (const index of requested ?? []) {
      view.setUint16(this.#at, index, true);
      this.#at += 2;
    }
    if (idBytes > 0) this.#at += this.#buffer.write(request.requestId, this.#at);
    if (textBytes > 0) this.#at += this.#buffer.write(text, this.#at);
    if (parametersBytes > 0) this.#at += this.#buffer.write(request.parametersJson, this.#at);
    while ((this.#at & 7) !== 0) this.#buffer[this.#at++] = 0;
    for (const tensor of request.inputs) this.#writeTensor(tensor);
  }

  #writeTensor(tensor: WireTensor): void {
    this.#reserve(tensorBytes + tensor.shape.length * 8);
    let byteOffset = tensor.byteOffset;
    if (tensor.data !== null) {
      byteOffset = (this.#inlineBytes + 15) & ~15;
      this.#inline.push({ at: byteOffset, data: tensor.data });
      this.#inlineBytes = byteOffset + tensor.byteLength;
    }
    this.#at = writeTensor(this.#view, this.#at, tensor, byteOffset);
  }
}
