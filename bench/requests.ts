import { create, toBinary } from "@bufbuild/protobuf";
import { ModelInferRequestSchema } from "../packages/server/src/protocols/kserve-grpc/gen/grpc_service_pb.js";
import { requestBytes } from "./load.ts";

const sixteen = Array.from({ length: 16 }, (_, index) => index);
const vector = (name: string, batched: boolean) => ({
  name,
  datatype: "FP32",
  shape: batched ? [1, 16] : [16],
  data: sixteen,
});

export const addSubBody = Buffer.from(JSON.stringify({ inputs: [vector("INPUT0", false), vector("INPUT1", false)] }));

export const addSubRequest = (model = "add_sub") => requestBytes(`/v2/models/${model}/infer`, addSubBody);

export const addSubBatchedRequest = (model = "add_sub") =>
  requestBytes(
    `/v2/models/${model}/infer`,
    Buffer.from(JSON.stringify({ inputs: [vector("INPUT0", true), vector("INPUT1", true)] })),
  );

/** A small inference request as a gRPC message. */
export const addSubMessage = (model = "add_sub"): Uint8Array =>
  toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, {
      modelName: model,
      inputs: ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "FP32", shape: [16n] })),
      rawInputContents: [0, 1].map(() => new Uint8Array(Float32Array.from(sixteen).buffer)),
    }),
  );

/** One FP32 tensor of `byteLength` bytes as a message of gRPC. */
export const identityMessage = (byteLength: number): Uint8Array =>
  toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, {
      modelName: "identity",
      inputs: [{ name: "INPUT0", datatype: "FP32", shape: [BigInt(byteLength / 4)] }],
      rawInputContents: [new Uint8Array(byteLength).fill(1)],
    }),
  );

/** A request to the decoupled model for a number of responses, as a gRPC message. */
export const decoupledMessage = (responseCount: number): Uint8Array =>
  toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, {
      modelName: "decoupled",
      inputs: [{ name: "COUNT", datatype: "INT32", shape: [1n] }],
      rawInputContents: [new Uint8Array(Int32Array.of(responseCount).buffer)],
    }),
  );

export const pipelineBody = Buffer.from(JSON.stringify({ inputs: [vector("IN", false)] }));

export const pipelineRequest = () => requestBytes("/v2/models/pipeline/infer", pipelineBody);

/** One FP32 tensor of `byteLength` bytes, binary in both directions. */
export function identityRequest(byteLength: number): Uint8Array {
  const header = Buffer.from(
    JSON.stringify({
      inputs: [
        {
          name: "INPUT0",
          datatype: "FP32",
          shape: [byteLength / 4],
          parameters: { binary_data_size: byteLength },
        },
      ],
      parameters: { binary_data_output: true },
    }),
  );
  return requestBytes("/v2/models/identity/infer", Buffer.concat([header, Buffer.alloc(byteLength, 1)]), {
    "inference-header-content-length": String(header.length),
  });
}

/** `count` numbers with fractions, like those of a picture, as JSON in both directions. */
export function identityJsonRequest(count: number): Uint8Array {
  const data = Array.from({ length: count }, (_, index) => ((index * 7919) % 256) / 255);
  const input = { name: "INPUT0", datatype: "FP32", shape: [count], data };
  return requestBytes("/v2/models/identity/infer", Buffer.from(JSON.stringify({ inputs: [input] })));
}

/** `batch` sentences of `tokens` tokens to the MiniLM encoder, binary in both directions. */
export function encoderRequest(batch: number, tokens: number): Uint8Array {
  const byteLength = batch * tokens * 8;
  const input = (name: string) => ({
    name,
    datatype: "INT64",
    shape: [batch, tokens],
    parameters: { binary_data_size: byteLength },
  });
  const header = Buffer.from(
    JSON.stringify({
      inputs: [input("input_ids"), input("attention_mask")],
      parameters: { binary_data_output: true },
    }),
  );
  const numbers = (value: bigint) => Buffer.from(new BigInt64Array(batch * tokens).fill(value).buffer);
  const body = Buffer.concat([header, numbers(1996n), numbers(1n)]);
  return requestBytes("/v2/models/encoder/infer", body, { "inference-header-content-length": String(header.length) });
}
