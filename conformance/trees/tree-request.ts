import assert from "node:assert/strict";

export interface TreeResponse {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/** Sends a request with binary tensors to a model of the `fil` backend. */
export async function requestTrees(
  port: number,
  model: string,
  rows: Float32Array,
  featureCount: number,
  output = "output__0",
): Promise<TreeResponse> {
  const header = Buffer.from(
    JSON.stringify({
      inputs: [
        {
          name: "input__0",
          datatype: "FP32",
          shape: [rows.length / featureCount, featureCount],
          parameters: { binary_data_size: rows.byteLength },
        },
      ],
      outputs: [{ name: output, parameters: { binary_data: true } }],
    }),
  );
  const response = await fetch(`http://127.0.0.1:${port}/v2/models/${model}/infer`, {
    method: "POST",
    headers: { "Inference-Header-Content-Length": String(header.length) },
    body: Buffer.concat([header, Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength)]),
  });
  const body = Buffer.from(await response.arrayBuffer());
  assert.equal(response.status, 200, body.toString());
  const length = Number(response.headers.get("inference-header-content-length"));
  const { outputs } = JSON.parse(body.toString("utf8", 0, length)) as { outputs: { shape: number[] }[] };
  return {
    shape: outputs[0]?.shape ?? [],
    values: new Float32Array(Uint8Array.from(body.subarray(length)).buffer),
  };
}
