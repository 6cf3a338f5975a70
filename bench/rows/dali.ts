import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory, ensureEnvironment, ensureFramework } from "../../conformance/environments/index.ts";
import { requestBytes, runLoad } from "../load.ts";
import type { BenchContext, Measure } from "../row.ts";
import { alternate, startPairOver, temporaryDirectory } from "../servers.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("../models/write_dali.py", import.meta.url));
const photographPath = "sklearn/datasets/images/flower.jpg";

interface Shape {
  /** Number of pictures of a request. */
  readonly rows: number;
  readonly clients: number;
}

const shapes: readonly Shape[] = [
  { rows: 1, clients: 1 },
  { rows: 1, clients: 8 },
  { rows: 8, clients: 2 },
];

/** The same photograph in each row: the request has its bytes, the response its pixels as a binary tensor. */
function photographRequest(photograph: Buffer, rows: number): Uint8Array {
  const binary_data_size = photograph.length * rows;
  const inputs = [
    { name: "encoded", datatype: "UINT8", shape: [rows, photograph.length], parameters: { binary_data_size } },
  ];
  const header = Buffer.from(JSON.stringify({ inputs, parameters: { binary_data_output: true } }));
  const body = Buffer.concat([header, ...Array.from({ length: rows }, () => photograph)]);
  const headers = { "inference-header-content-length": String(header.length) };
  return requestBytes("/v2/models/photographs/infer", body, headers);
}

/**
 * Photographs that one serialized pipeline decodes, resizes and normalizes on the CPU, with one DALI thread. The
 * measured Triton has no DALI backend, so the same pipeline runs in a model of its Python backend with the same DALI.
 * DALI alone runs it in a loop, in batches of the size of a request.
 */
export const daliRow = {
  name: "dali",
  async measure(context: BenchContext): Promise<Measure[]> {
    const { python } = await ensureFramework("dali");
    const { sitePackages } = await ensureEnvironment(cacheDirectory(process.env), "photographs");
    const path = join(sitePackages, photographPath);
    const photograph = await readFile(path);
    const packages = (
      await run(python, ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    ).stdout.trim();
    await using directory = await temporaryDirectory();
    await run(python, [program, "write", directory.path, packages]);
    const repositories = { galatea: join(directory.path, "galatea"), oracle: join(directory.path, "oracle") };
    await using pair = await startPairOver(context, repositories, {}, async () => {});
    const timing = context.quick ? { durationMs: 2000, warmUpMs: 300 } : { durationMs: 4000, warmUpMs: 1500 };
    const measures: Measure[] = [];
    for (const { rows, clients } of shapes) {
      const request = photographRequest(photograph, rows);
      const bare: number[] = [];
      const what = `photographs in requests of ${rows}, ${clients} at a time`;
      const { ours, oracle } = await alternate(context, pair, what, async (server) => {
        if (server.kind === "galatea") {
          const loop = [program, "loop", directory.path, path, String(rows), String(timing.durationMs / 1000)];
          bare.push(Number((await run(python, loop)).stdout));
        }
        return rows * (await runLoad({ port: server.httpPort, request, clients, ...timing })).perSecond;
      });
      const about = { unit: "pictures/s", ours } as const;
      measures.push(
        {
          ...about,
          what: `DALI: ${what}, beside a model of Triton's Python backend`,
          oracle,
          goal: { kind: "at least", of: "ratio", value: 1 },
        },
        { ...about, what: `DALI: ${what}, beside DALI in a bare loop`, oracle: bare, goal: null },
      );
    }
    return measures;
  },
};
