import { gzipSync } from "node:zlib";
import type { Case, Comparison, Request, Step } from "../case.ts";
import { addSubHeader, addSubInputs, differs, floats, newer } from "../requests.ts";

const sm = (
  method: Request["method"],
  path: string,
  body: string | Uint8Array | undefined,
  compare: Comparison,
  headers: Record<string, string> = {},
): Step => ({
  request: { method, path, port: "sagemaker", ...(body === undefined ? {} : { body }), headers },
  compare,
});
const single = (name: string, ...steps: Step[]): Case => ({ name: `container: ${name}`, fixture: "main", steps });
const multi = (name: string, ...steps: Step[]): Case => ({ name: `multi-model: ${name}`, fixture: "multi", steps });
const json = JSON.stringify({ inputs: addSubInputs });
const chainInputs = JSON.stringify({
  inputs: [
    { ...addSubInputs[0], name: "A" },
    { ...addSubInputs[1], name: "B" },
  ],
});
const header = Buffer.from(JSON.stringify({ ...addSubHeader, parameters: { binary_data_output: true } }));
const packed = Buffer.concat([header, floats(1, 2, 3, 4), floats(1, 1, 1, 1)]);
const binaryType = (size: number | string) => ({
  "content-type": `application/vnd.sagemaker-triton.binary+json;json-header-size=${size}`,
});

/** The runner prepares the `<hash>` directories below /opt/ml/models from the fixture's archives. */
const root = "/opt/ml/models";
const target = (name: string) => ({ "x-amzn-sagemaker-target-model": name });
const load = (hash: string, compare: Comparison, name = `${hash}.tar.gz`) =>
  sm("POST", "/models", JSON.stringify({ model_name: hash, url: `${root}/${hash}/model` }), compare, target(name));
const invoke = (hash: string, compare: Comparison, body = json, name = `${hash}.tar.gz`) =>
  sm("POST", `/models/${hash}/invoke`, body, compare, target(name));
const remove = (hash: string, compare: Comparison = "bytes") =>
  sm("DELETE", `/models/${hash}`, undefined, compare, target(`${hash}.tar.gz`));

export const container: readonly Case[] = [
  single("ping", sm("GET", "/ping", undefined, "bytes")),
  single("ping with POST", sm("POST", "/ping", "", "status")),
  {
    name: "container: ping in mode live with a failed model",
    fixture: "lenient",
    steps: [sm("GET", "/ping", undefined, "bytes")],
  },
  {
    name: "container: ping in mode ready with a failed model",
    fixture: "partly",
    steps: [sm("GET", "/ping", undefined, "bytes")],
  },
  single("invocations in JSON", sm("POST", "/invocations", json, "json", { "content-type": "application/json" })),
  single("invocations without a content type", sm("POST", "/invocations", json, "json")),
  single("invocations in binary", sm("POST", "/invocations", packed, "binary", binaryType(header.length))),
  single(
    "invocations with a header size beyond the body",
    sm("POST", "/invocations", packed, "error", binaryType(100_000)),
  ),
  single(
    "invocations with a header size that is not a number",
    newer(
      sm("POST", "/invocations", packed, "error", binaryType("x")),
      400,
      "Unable to parse inference header size, got: x",
    ),
  ),
  single(
    "invocations of another binary type",
    sm("POST", "/invocations", packed, "error", { "content-type": "application/octet-stream" }),
  ),
  single(
    "invocations in gzip",
    differs(sm("POST", "/invocations", gzipSync(json), "json", { "content-encoding": "gzip" }), {
      row: "invocations-encoding",
      status: 200,
      includes: ['"model_name":"add_sub"'],
    }),
  ),
  single(
    "invocations in an unknown encoding",
    differs(sm("POST", "/invocations", json, "error", { "content-encoding": "br" }), {
      row: "invocations-encoding",
      status: 415,
      includes: ["Unsupported compression type"],
    }),
  ),
  single(
    "invocations in binary with white space before the type",
    sm("POST", "/invocations", packed, "status", {
      "content-type": `  ${binaryType(header.length)["content-type"]}`,
    }),
  ),
  single(
    "invocations in binary after another type",
    sm("POST", "/invocations", packed, "error", {
      "content-type": `text/plain;${binaryType(header.length)["content-type"]}`,
    }),
  ),
  single(
    "invocations in binary in capitals",
    sm("POST", "/invocations", packed, "error", {
      "content-type": binaryType(header.length)["content-type"].toUpperCase(),
    }),
  ),
  single(
    "invocations in binary with text after the size",
    sm("POST", "/invocations", packed, "binary", {
      "content-type": `${binaryType(header.length)["content-type"]};charset=utf-8`,
    }),
  ),
  single("invocations with a body that is not JSON", sm("POST", "/invocations", "{", "error")),
  single("invocations with a missing input", sm("POST", "/invocations", '{"inputs":[]}', "error")),
  single("invocations with GET", sm("GET", "/invocations", undefined, "status")),
  single("an unknown path", sm("GET", "/v2/health/live", undefined, "status")),
  {
    name: "container: invocations without a default model",
    fixture: "partly",
    steps: [sm("POST", "/invocations", json, "error")],
  },
  multi("ping", sm("GET", "/ping", undefined, "bytes")),
  multi("no models", sm("GET", "/models", undefined, "json")),
  multi("invoke a model that is not loaded", invoke("kservesuite1", "bytes")),
  multi("describe a model that is not loaded", sm("GET", "/models/kservesuite1", undefined, "bytes")),
  multi("unload a model that is not loaded", remove("kservesuite1")),
  multi(
    "load a url outside the model directory",
    newer(
      sm("POST", "/models", JSON.stringify({ model_name: "h", url: "/tmp/somewhere" }), "error", target("h.tar.gz")),
      400,
      "expected a path of the form /opt/ml/models/<hash>/model",
    ),
  ),
  multi("load a url that does not exist", load("kservesuitenone", "error")),
  multi(
    "load, describe, invoke, load again, unload",
    load("kservesuite1", "bytes"),
    sm("GET", "/models/kservesuite1", undefined, "json"),
    invoke("kservesuite1", "json"),
    load("kservesuite1", "error"),
    remove("kservesuite1"),
    invoke("kservesuite1", "bytes"),
  ),
  multi(
    "an archive with the model in its root",
    load("kservesuite2", "bytes"),
    invoke("kservesuite2", "json"),
    remove("kservesuite2"),
  ),
  multi(
    "an archive with an ensemble serves the ensemble",
    load("kservesuite3", "bytes"),
    invoke("kservesuite3", "ensemble", chainInputs),
    remove("kservesuite3"),
  ),
  multi(
    "an archive whose model is configured under another name than its directory's",
    load("kservesuite6", "bytes"),
    sm("GET", "/models/kservesuite6", undefined, "json"),
    invoke("kservesuite6", "json"),
    remove("kservesuite6"),
  ),
  multi(
    "an archive with the model in its root, configured under its own name",
    load("kservesuite7", "bytes"),
    invoke("kservesuite7", "json"),
    remove("kservesuite7"),
  ),
  multi(
    "an archive whose ensemble is configured under another name than its directory's",
    load("kservesuite8", "bytes"),
    invoke("kservesuite8", "ensemble", chainInputs),
    remove("kservesuite8"),
  ),
  multi(
    "an archive whose ensemble has a step under another name than its directory's",
    differs(load("kservesuite9", "error"), {
      row: "namespaced-names",
      status: 400,
      includes: [
        "load failed for model 'kservesuite9.tar.gz': ensemble kservesuite9.tar.gz contains models that are not available or ambiguous: add_sub",
        "unexpected directory name 'add_sub' for model 'another', directory name must equal model name",
      ],
    }),
  ),
  multi(
    "two archives with models of the same name",
    load("kservesuite1", "bytes"),
    load("kservesuite2", "bytes"),
    invoke("kservesuite1", "json"),
    invoke("kservesuite2", "json"),
    remove("kservesuite1"),
    remove("kservesuite2"),
  ),
  multi("a model that cannot be initialised", load("kservesuite4", "error")),
  multi("a model that runs out of memory", load("kservesuite5", "error")),
  multi(
    "an error of a request",
    load("kservesuite1", "bytes"),
    invoke("kservesuite1", "error", '{"inputs":[]}'),
    remove("kservesuite1"),
  ),
  multi(
    "list names and urls",
    load("kservesuite1", "bytes"),
    differs(sm("GET", "/models", undefined, "json"), {
      row: "multi-model-list",
      status: 200,
      includes: ['"modelName":"kservesuite1"', '"modelUrl":"/opt/ml/models/kservesuite1/model"'],
    }),
    remove("kservesuite1"),
  ),
  multi(
    "load with a body that is not JSON",
    differs(sm("POST", "/models", "no json", "error", target("x.tar.gz")), {
      row: "multi-model-load-no-json",
      status: 400,
      includes: ["error"],
      notAsked: true,
    }),
  ),
];
