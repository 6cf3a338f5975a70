import type { Case } from "../case.ts";
import { differs, get } from "../requests.ts";

/** The extensions in Triton's order, without unsupported ones. */
const extensions = [
  "classification",
  "model_repository",
  "model_repository(unload_dependents)",
  "schedule_policy",
  "model_configuration",
  "binary_tensor_data",
  "parameters",
  "statistics",
];
const configsOf = [
  "add_sub",
  "add_sub_batch",
  "reshaped",
  "optional",
  "scores",
  "arguments",
  "versions",
  "auto",
  "auto_without_config",
  "batches",
  "queue_timeout",
  "chain",
  "batched_over_plain",
];
const metadataOf = [
  "add_sub",
  "add_sub_batch",
  "identity_all",
  "reshaped",
  "versions",
  "auto_without_config",
  "chain",
  "nested",
];

export const metadata: readonly Case[] = [
  { name: "metadata: the root is not a route", fixture: "main", steps: [get("/", "error")] },
  {
    name: "metadata: the root as a browser requests it",
    fixture: "main",
    steps: [
      differs(get("/", "error", { headers: { accept: "text/html" } }), {
        row: "browser-page",
        status: 200,
        includes: ["<h1>"],
      }),
    ],
  },
  {
    name: "metadata: the server",
    fixture: "main",
    steps: [
      differs(get("/v2"), {
        row: "server-version",
        status: 200,
        includes: ['{"name":"conformance","version":', `"extensions":${JSON.stringify(extensions)}`],
      }),
    ],
  },
  ...metadataOf.map((model): Case => ({
    name: `metadata: ${model}`,
    fixture: "main",
    steps: [get(`/v2/models/${model}`)],
  })),
  { name: "metadata: one version", fixture: "main", steps: [get("/v2/models/versions/versions/1")] },
  { name: "metadata: unknown model", fixture: "main", steps: [get("/v2/models/nobody", "error")] },
  { name: "metadata: unknown version", fixture: "main", steps: [get("/v2/models/add_sub/versions/9", "error")] },
  ...configsOf.map((model): Case => ({
    name: `config: ${model}`,
    fixture: "main",
    steps: [get(`/v2/models/${model}/config`, "map")],
  })),
  { name: "config: the order of keys is the message's", fixture: "main", steps: [get("/v2/models/add_sub/config")] },
  { name: "config: of a version", fixture: "main", steps: [get("/v2/models/versions/versions/3/config")] },
  { name: "config: unknown model", fixture: "main", steps: [get("/v2/models/nobody/config", "error")] },
  { name: "config: unknown version", fixture: "main", steps: [get("/v2/models/add_sub/versions/2/config", "error")] },
];
