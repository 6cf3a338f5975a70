import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { requestOk } from "../send-request.ts";
import { cacheDirectory, ensureEnvironment, startGalatea } from "../../conformance/environments/index.ts";
import { requestBytes, runLoad } from "../load.ts";
import type { BenchContext, Measure } from "../row.ts";
import { temporaryDirectory } from "../servers.ts";

const program = fileURLToPath(new URL("../models/trees.py", import.meta.url));
const features = 32;
const libraries = ["xgboost", "lightgbm", "sklearn"] as const;
/** Number of rows of a request, and number of concurrent clients. */
const batches = [
  { rows: 1, clients: 4 },
  { rows: 100, clients: 4 },
  { rows: 10_000, clients: 2 },
] as const;

/** Random rows and their predictions as binary tensors. */
function treesRequest(model: string, rows: number): Uint8Array {
  const data = Float32Array.from({ length: rows * features }, () => Math.random() * 4 - 2);
  const header = Buffer.from(
    JSON.stringify({
      inputs: [
        {
          name: "input__0",
          datatype: "FP32",
          shape: [rows, features],
          parameters: { binary_data_size: data.byteLength },
        },
      ],
      outputs: [{ name: "output__0", parameters: { binary_data: true } }],
    }),
  );
  const body = Buffer.concat([header, new Uint8Array(data.buffer)]);
  return requestBytes(`/v2/models/${model}/infer`, body, { "inference-header-content-length": String(header.length) });
}

/** Tree models over HTTP, compared with the library that trained them, which runs in a plain loop with all of its threads. */
export const treesRow = {
  name: "trees",
  async measure(context: BenchContext): Promise<Measure[]> {
    const { python } = await ensureEnvironment(cacheDirectory(process.env), "trees");
    await using directory = await temporaryDirectory();
    await promisify(execFile)(python, [program, "train", directory.path]);
    const server = await startGalatea({ repositories: [directory.path] });
    const seconds = context.quick ? 1 : 5;
    try {
      const measures: Measure[] = [];
      for (const library of libraries) {
        for (const { rows, clients } of batches) {
          const [ours, bare, evaluated]: [number[], number[], number[]] = [[], [], []];
          for (let round = 0; round < context.rounds; round++) {
            const loop = [program, "loop", directory.path, library, String(rows), String(seconds)];
            bare.push(rows * Number((await promisify(execFile)(python, loop)).stdout));
            const request = treesRequest(library, rows);
            const load = { port: server.httpPort, request, clients, durationMs: seconds * 1000, warmUpMs: 500 };
            const before = await inferences(server.httpPort, library);
            ours.push(rows * (await runLoad(load)).perSecond);
            const after = await inferences(server.httpPort, library);
            evaluated.push((1e9 * rows * (after.count - before.count)) / (after.ns - before.ns));
            context.log(`${library}, ${rows} rows: ${ours.at(-1)?.toFixed(0)}/s, bare ${bare.at(-1)?.toFixed(0)}/s`);
          }
          measures.push({
            what: `${library}, requests of ${rows} rows, beside the library in a bare loop`,
            unit: "rows/s",
            ours,
            oracle: bare,
            // A request of one row over HTTP is not comparable with a function call. The next measurement compares the
            // evaluation alone.
            goal: rows === 1 ? null : { kind: "at least", of: "ratio", value: 1 },
          });
          if (rows > 1) continue;
          measures.push({
            what: `${library}, the evaluation of one row in the server, beside a call of the library`,
            unit: "rows/s",
            ours: evaluated,
            oracle: bare,
            goal: { kind: "at least", of: "ratio", value: 1 },
          });
        }
      }
      return measures;
    } finally {
      await server.stop();
    }
  },
};

/** Number and total duration of a model's inferences, from its statistics. */
async function inferences(port: number, model: string): Promise<{ readonly count: number; readonly ns: number }> {
  const body = await requestOk(port, "GET", `/v2/models/${model}/stats`);
  const [{ inference_stats: stats }] = (JSON.parse(body.toString()) as Statistics).model_stats;
  return stats.compute_infer;
}

interface Statistics {
  readonly model_stats: readonly [
    { readonly inference_stats: { readonly compute_infer: { readonly count: number; readonly ns: number } } },
  ];
}
