import type { Case } from "../case.ts";
import { modelStream, rawInput } from "../grpc-messages.ts";
import { differs, floats, ints } from "../requests.ts";

const stream = (name: string, ...steps: Case["steps"]): Case => ({
  name: `grpc stream: ${name}`,
  fixture: "main",
  steps,
});

const addSub = (id: string, more: object = {}) => ({
  modelName: "add_sub",
  id,
  inputs: [rawInput("INPUT0", "FP32", [4]), rawInput("INPUT1", "FP32", [4])],
  rawInputContents: [floats(1, 2, 3, 4), floats(0.5, 0.25, 0.1, -1)],
  ...more,
});
const error = (id: string, kind: number) => ({
  modelName: "errors",
  id,
  inputs: [rawInput("KIND", "INT32", [1])],
  rawInputContents: [ints(kind)],
});
const bool = (value: boolean) => ({ parameterChoice: { case: "boolParam" as const, value } });

/** Returns a case that is rejected before its execution: Triton's response has only the id. */
const refused = (name: string, message: string, ...requests: Parameters<typeof modelStream>[0]): Case[] =>
  [
    [name, {}],
    [`${name}, with errors of models as the status`, { headers: { triton_grpc_error: "true" } }],
  ].map(([name, more]) =>
    stream(
      name as string,
      differs(modelStream(requests, "json", more as object), {
        row: "grpc-refused-in-stream",
        status: 200,
        includes: [`"error_message":"${message}`, '"id":"1"', '"triton_final_response":{"bool_param":true}'],
      }),
    ),
  );
/** Returns the status after rejected requests, at which Triton ends the stream. */
const statusBehind = (...requests: Parameters<typeof modelStream>[0]) =>
  modelStream(requests, "error", { headers: { triton_grpc_error: "true" } });

/** Several requests on one call. */
export const grpcStream: readonly Case[] = [
  stream("one request", modelStream([addSub("1")])),
  stream("three requests in order", modelStream([addSub("1"), addSub("2"), addSub("3")])),
  stream("different models", modelStream([addSub("1"), error("2", 20), addSub("3")])),
  stream("no request", modelStream([])),
  stream("without an id", modelStream([addSub("")])),
  stream("one output", modelStream([addSub("1", { outputs: [{ name: "OUTPUT1" }] })])),
  stream(
    "an empty final response is not added to an existing answer",
    modelStream([addSub("1", { parameters: { triton_enable_empty_final_response: bool(true) } })]),
  ),
  stream("a model's error between answers", modelStream([addSub("1"), error("2", 3), addSub("3")])),
  stream("a failed batch", modelStream([error("1", 11)])),
  stream(
    "a model's error as the status of the call, after a rejected request",
    statusBehind(addSub("1", { modelName: "nobody" }), addSub("2"), error("3", 3)),
  ),
  ...refused(
    "an unknown model",
    "Request for unknown model: 'nobody' is not found",
    addSub("1", { modelName: "nobody" }),
    addSub("2"),
  ),
  ...refused(
    "a rejected request",
    "unable to find data for input tensor 'INPUT0' for model 'add_sub' in request.",
    addSub("1", { rawInputContents: [] }),
    addSub("2"),
  ),
  ...refused(
    "an unknown input",
    "[request id: 1] expected 2 inputs but got 1 inputs for model 'add_sub'.",
    addSub("1", { inputs: [rawInput("X", "FP32", [4])] }),
  ),
  ...refused(
    "a version that is not a number",
    "failed to get model version from specified version string 'x'",
    addSub("1", { modelVersion: "x" }),
  ),
  stream(
    "an error as the status of the call",
    modelStream([error("1", 3), addSub("2")], "error", { headers: { triton_grpc_error: "true" } }),
  ),
  stream(
    "answers with errors of models as the status",
    differs(modelStream([addSub("1"), addSub("2")], "json", { headers: { triton_grpc_error: "true" } }), {
      row: "grpc-error-half-close",
      status: 200,
      includes: ['"id":"1"', '"id":"2"'],
      notAsked: true,
    }),
  ),
];
