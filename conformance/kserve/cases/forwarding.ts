import type { Case } from "../case.ts";
import { modelInfer, rawInput } from "../grpc-messages.ts";
import { differs, floats, infer, input, newer, post } from "../requests.ts";

const forwarding = (name: string, ...steps: Case["steps"]): Case => ({
  name: `forwarded headers: ${name}`,
  fixture: "forwarding",
  steps,
});
type Headers = Readonly<Record<string, string>>;
const http = (headers: Headers, parameters: object = {}) =>
  infer("report", { parameters, inputs: [input("INPUT0", "FP32", [1, 2], [1, 2])] }, "json", { headers });
const grpc = (headers: Headers, parameters: object = {}) =>
  modelInfer(
    {
      modelName: "report",
      inputs: [rawInput("INPUT0", "FP32", [1, 2])],
      rawInputContents: [floats(1, 2)],
      parameters: parameters as never,
    },
    "json",
    { headers },
  );
const number = { parameterChoice: { case: "int64Param" as const, value: 5n } };

/** `--http-header-forward-pattern` and `--grpc-header-forward-pattern`. */
export const forwardedHeaders: readonly Case[] = [
  forwarding("a header whose name matches the pattern", http({ "x-a": "1" }), grpc({ "x-a": "1" })),
  forwarding("headers with other names", http({ other: "1" }), grpc({ other: "1" })),
  forwarding("in another case", http({ "X-A": "1" }), http({ "y-b": "2" }), grpc({ "y-b": "2" })),
  forwarding("a name that contains a matching name", http({ "ax-a": "1" }), grpc({ "ax-a": "1" })),
  forwarding(
    "a header with the name of a parameter",
    http({ "x-a": "1" }, { "x-a": 5, b: 1 }),
    grpc({ "x-a": "1" }, { "x-a": number }),
  ),
  forwarding("with blanks at the ends, over gRPC", grpc({ "x-a": " v " })),
  forwarding(
    "with a blank at the end, over HTTP",
    differs(http({ "x-a": "v " }), { row: "header-blanks", status: 200, includes: ['\\"x-a\\": \\"v\\"'] }),
  ),
  forwarding(
    "headers of generate are not forwarded",
    post("/v2/models/report/generate", { INPUT0: [1, 2] }, "error", { headers: { "x-a": "1" } }),
  ),
  forwarding(
    "a header with a reserved name",
    newer(grpc({ triton_other: "1" }), 603, "header 'triton_other' is reserved for Triton usage"),
  ),
];
