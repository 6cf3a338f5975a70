import { gzipSync } from "node:zlib";
import type { Case, Step } from "../case.ts";
import { binaryInput, differs, input, newer, post, strings } from "../requests.ts";

const sagemaker = { port: "sagemaker" } as const;
const invocations = (body: unknown, headers: Record<string, string> = {}): Step =>
  post("/invocations", body, "error", { ...sagemaker, headers });

/** Returns a KServe request whose code the decoupled model runs. */
const kserve = (code: string | readonly string[], more: object = {}) => ({
  inputs: [input("CODE", "BYTES", [1], [typeof code === "string" ? code : code.join("\n")])],
  ...more,
});
/** Returns the request for the generate extension. */
const flat = (code: string | readonly string[], more: object = {}) => ({
  CODE: typeof code === "string" ? code : code.join("\n"),
  ...more,
});

/** Marks a difference: Triton rejects decoupled models on this port, and we stream their responses. */
const streamed = (step: Step, status: number, ...includes: string[]): Step =>
  differs(step, { row: "container-streams", status, includes });
const inferred = (name: string, ...steps: readonly Step[]): Case => ({
  name: `container streams: infer: ${name}`,
  fixture: "decoupled",
  steps,
});
const generated = (name: string, ...steps: readonly Step[]): Case => ({
  name: `container streams: generate: ${name}`,
  fixture: "generate",
  steps,
});

const three = ["for i in range(3): sender.send(answer(i))", "sender.send(flags=FINAL)"];
const none = "sender.send(flags=FINAL)";
const one = "sender.send(answer('one'), FINAL)";
const middle = ["sender.send(answer(1))", "sender.send(error('no'))", "sender.send(answer(2), FINAL)"];
const event = (value: string, more = "") =>
  `data: {${more}"model_name":"streams","model_version":"1","outputs":[{"name":"OUT","datatype":"BYTES","shape":[1],"data":["${value}"]}]}\n\n`;
const flatEvent = (value: string) => `data: {"OUT":"${value}","model_name":"streams","model_version":"1"}\n\n`;

const header = Buffer.from(JSON.stringify({ inputs: [binaryInput("CODE", "BYTES", [1], strings(one).length)] }));
const binaryType = (size: number) => ({
  "content-type": `application/vnd.sagemaker-triton.binary+json;json-header-size=${size}`,
});

const hash = "kservesuite10";
const target = { "x-amzn-sagemaker-target-model": `${hash}.tar.gz` };
const load = post("/models", { model_name: hash, url: `/opt/ml/models/${hash}/model` }, "bytes", {
  ...sagemaker,
  headers: target,
});
const invoke = (body: unknown) => post(`/models/${hash}/invoke`, body, "error", { ...sagemaker, headers: target });
const unload: Step = {
  request: { method: "DELETE", path: `/models/${hash}`, port: "sagemaker", headers: target },
  compare: "bytes",
};

/** Decoupled models and the generate extension behind the container contract. */
export const containerStreams: readonly Case[] = [
  inferred(
    "answers as events",
    streamed(invocations(kserve(three)), 200, event("0") + event("1") + event("2")),
    streamed(invocations(kserve(three, { id: "r" })), 200, event("0", '"id":"r",') + event("1", '"id":"r",')),
    streamed(invocations(kserve(one)), 200, event("one")),
    streamed(invocations(kserve(none)), 200, ""),
  ),
  inferred(
    "errors of the model",
    streamed(invocations(kserve(middle)), 200, `${event("1")}data: {"error":"no"}\n\n${event("2")}`),
    streamed(invocations(kserve("sender.send(error('no'), FINAL)")), 500, '{"error":"no"}'),
    streamed(invocations(kserve("raise ValueError('no')")), 500, "ValueError: no"),
    streamed(
      invocations(kserve(["sender.send(answer(1))", "raise ValueError('no')"])),
      200,
      `${event("1")}data: {"error":`,
    ),
  ),
  inferred(
    "requests in binary and in gzip",
    streamed(invocations(Buffer.concat([header, strings(one)]), binaryType(header.length)), 200, event("one")),
    streamed(invocations(gzipSync(JSON.stringify(kserve(one))), { "content-encoding": "gzip" }), 200, event("one")),
  ),
  inferred(
    "binary outputs",
    streamed(
      invocations(kserve(one, { parameters: { binary_data_output: true } })),
      400,
      "cannot contain binary outputs",
    ),
    streamed(
      invocations(kserve(one, { outputs: [{ name: "OUT", parameters: { binary_data: true } }] })),
      400,
      "cannot contain binary outputs",
    ),
    streamed(invocations(kserve(one, { outputs: [{ name: "OUT" }] })), 200, event("one")),
  ),
  inferred(
    "rejected requests",
    streamed(invocations("{"), 500, "failed to parse the request JSON buffer"),
    streamed(invocations({ inputs: [] }), 400, "expected 1 inputs but got 0 inputs"),
    streamed(invocations(kserve(one, { outputs: [{ name: "NO" }] })), 400, "unexpected inference output 'NO'"),
    streamed(invocations(""), 400, "cannot contain binary outputs"),
  ),
  generated(
    "one answer",
    newer(
      invocations(flat(one, { id: "r" })),
      200,
      '{"OUT":"one","id":"r","model_name":"streams","model_version":"1"}',
    ),
    newer(invocations(flat(three)), 200, "generate expects model to produce exactly 1 response"),
    newer(invocations(flat(none)), 200, "generate expects model to produce exactly 1 response"),
    newer(invocations(flat("sender.send(error('no'), FINAL)")), 400, '{"error":"no"}'),
    newer(invocations({ NO: 1 }), 400, "expected 1 inputs but got 0 inputs"),
    newer(invocations("{"), 500, "failed to parse the request JSON buffer"),
    newer(invocations(flat(one), { "content-encoding": "gzip" }), 400, "Unsupported content-encoding"),
  ),
  {
    name: "container streams: generate_stream",
    fixture: "generate_stream",
    steps: [
      newer(invocations(flat(three)), 200, flatEvent("0") + flatEvent("1") + flatEvent("2")),
      newer(invocations(flat(one)), 200, flatEvent("one")),
      newer(invocations(flat(none)), 200, ""),
      newer(invocations(flat(middle)), 200, `${flatEvent("1")}data: {"error":"no"}\n\n${flatEvent("2")}`),
      newer(invocations(flat("sender.send(error('no'), FINAL)")), 400, 'data: {"error":"no"}\n\n'),
      newer(invocations("{"), 500, '{"error":"failed to parse the request JSON buffer'),
    ],
  },
  {
    name: "container streams: multi-model",
    fixture: "multi",
    steps: [
      load,
      streamed(
        invoke(kserve(three)),
        200,
        `"outputs":[{"name":"OUT","datatype":"BYTES","shape":[1],"data":["2"]}]}\n\n`,
      ),
      streamed(invoke(kserve("sender.send(error('no'), FINAL)")), 400, '{"error":"no"}'),
      streamed(invoke(kserve(middle)), 200, 'data: {"error":"no"}\n\n'),
      streamed(invoke("{"), 400, "failed to parse the request JSON buffer"),
      unload,
    ],
  },
];
