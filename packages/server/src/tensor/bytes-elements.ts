import { InferenceError } from "@galatea/base";

/** Encodes elements as a BYTES tensor: uint32 little-endian length, then the bytes, one element after another. */
export function joinBytesElements(elements: readonly Uint8Array[]): Uint8Array {
  let byteLength = 0;
  for (const element of elements) byteLength += 4 + element.length;
  const data = new Uint8Array(byteLength);
  const view = new DataView(data.buffer);
  let at = 0;
  for (const element of elements) {
    view.setUint32(at, element.length, true);
    data.set(element, at + 4);
    at += 4 + element.length;
  }
  return data;
}

/** Returns the elements of a BYTES tensor as views. Throws INVALID_ARG when a length exceeds the data. */
export function splitBytesElements(data: Uint8Array): Uint8Array[] {
  const elements: Uint8Array[] = [];
  let at = 0;
  while (at < data.length) {
    const end = elementEnd(data, at);
    elements.push(data.subarray(at + 4, end));
    at = end;
  }
  return elements;
}

/** Returns the number of elements of a BYTES tensor without creating views. Throws INVALID_ARG when a length exceeds the data. */
export function countBytesElements(data: Uint8Array): number {
  let count = 0;
  for (let at = 0; at < data.length; at = elementEnd(data, at)) count++;
  return count;
}

/** Returns the end of the element whose length field is at offset `at`. */
export function elementEnd(data: Uint8Array, at: number): number {
  if (at + 4 > data.length) {
    throw new InferenceError("INVALID_ARG", `incomplete string length indicator at byte ${at} of ${data.length}`);
  }
  const length = (data[at]! | (data[at + 1]! << 8) | (data[at + 2]! << 16) | (data[at + 3]! << 24)) >>> 0;
  const end = at + 4 + length;
  if (end > data.length) {
    throw new InferenceError(
      "INVALID_ARG",
      `incomplete string data at byte ${at + 4}: ${length} bytes announced, ${data.length - at - 4} present`,
    );
  }
  return end;
}
