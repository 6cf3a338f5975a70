import type { Case } from "../case.ts";
import { differs, get, infer, input } from "../requests.ts";

const run = infer("auto_without_config", { inputs: [input("INPUT0", "FP32", [2, 4], [1, 2, 3, 4, 5, 6, 7, 8])] });

export const statistics: readonly Case[] = [
  {
    name: "statistics: a model without requests",
    fixture: "lenient",
    steps: [get("/v2/models/add_sub/stats", "statistics")],
  },
  {
    name: "statistics: success, failure and rows are counted",
    fixture: "partly",
    steps: [
      infer("add_sub", {
        inputs: [input("INPUT0", "FP32", [4], [1, 2, 3, 4]), input("INPUT1", "FP32", [4], [1, 2, 3, 4])],
      }),
      infer("add_sub", { inputs: [] }, "error"),
      get("/v2/models/add_sub/stats", "statistics"),
      get("/v2/models/add_sub/versions/1/stats", "statistics"),
    ],
  },
  {
    name: "statistics: a batch of two rows",
    fixture: "main",
    steps: [run, get("/v2/models/auto_without_config/stats", "status")],
  },
  { name: "statistics: all models", fixture: "partly", steps: [get("/v2/models/stats", "status")] },
  { name: "statistics: unknown model", fixture: "main", steps: [get("/v2/models/nobody/stats", "error")] },
  {
    name: "statistics: unknown version",
    fixture: "main",
    steps: [get("/v2/models/add_sub/versions/9/stats", "error")],
  },
  {
    name: "metrics: families, types and labels",
    fixture: "partly",
    steps: [get("/metrics", "metrics", { port: "metrics" })],
  },
  {
    name: "metrics: another path",
    fixture: "partly",
    steps: [
      differs(get("/v2/health/ready", "status", { port: "metrics" }), {
        row: "metrics-paths",
        status: 404,
        includes: [],
      }),
    ],
  },
  {
    name: "metrics: POST is not allowed",
    fixture: "partly",
    steps: [{ request: { method: "POST", path: "/metrics", port: "metrics", body: "" }, compare: "status" }],
  },
];
