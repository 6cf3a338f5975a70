import type { Comparison, Difference, Request, Step } from "./case.ts";

/** Functions that create the steps of cases. */
export const get = (path: string, compare: Comparison = "json", more: Partial<Request> = {}): Step => ({
  request: { method: "GET", path, ...more },
  compare,
});

export const post = (path: string, body: unknown, compare: Comparison = "json", more: Partial<Request> = {}): Step => ({
  request: { method: "POST", path, ...(body === undefined ? {} : { body: asBody(body) }), ...more },
  compare,
});

function asBody(body: unknown): string | Uint8Array {
  return typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
}

export const infer = (model: string, body: unknown, compare: Comparison = "json", more: Partial<Request> = {}): Step =>
  post(`/v2/models/${model}/infer`, body, compare, more);

/** Returns a step in which our response differs on purpose. */
export const differs = (step: Step, difference: Difference): Step => ({ ...step, difference });

/** Returns a request with a JSON header followed by the buffers. */
export function binary(
  model: string,
  header: unknown,
  buffers: readonly Uint8Array[],
  compare: Comparison = "binary",
  headers: Record<string, string> = {},
): Step {
  const json = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
  return infer(model, Buffer.concat([json, ...buffers]), compare, {
    headers: { "inference-header-content-length": String(json.length), ...headers },
  });
}

/** Returns a step with the response of newer Triton releases, where 2.51 responds differently. */
export const newer = (step: Step, status: number, ...includes: string[]): Step =>
  differs(step, { row: "newer-release", status, includes });

export const input = (name: string, datatype: string, shape: readonly number[], data: unknown) => ({
  name,
  shape,
  datatype,
  data,
});

export const binaryInput = (name: string, datatype: string, shape: readonly number[], byteLength: number) => ({
  name,
  shape,
  datatype,
  parameters: { binary_data_size: byteLength },
});

export const floats = (...values: number[]) => Buffer.from(new Float32Array(values).buffer);
export const ints = (...values: number[]) => Buffer.from(new Int32Array(values).buffer);
/** Encodes BYTES elements, each after its uint32 length. */
export const strings = (...values: string[]) =>
  Buffer.concat(
    values.flatMap((value) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(Buffer.byteLength(value));
      return [length, Buffer.from(value)];
    }),
  );

export const addSubInputs = [
  input("INPUT0", "FP32", [4], [1, 2, 3, 4]),
  input("INPUT1", "FP32", [4], [0.5, 0.25, 0.1, -1]),
];
export const addSubHeader = {
  inputs: [binaryInput("INPUT0", "FP32", [4], 16), binaryInput("INPUT1", "FP32", [4], 16)],
};
