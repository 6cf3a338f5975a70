import { execFile } from "node:child_process";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { assembleRepository } from "../../examples/minilm/assemble.ts";
import { startGalatea } from "../../conformance/environments/index.ts";
import { requestOk } from "../send-request.ts";
import { runLoad } from "../load.ts";
import { encoderRequest } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { temporaryDirectory } from "../servers.ts";

const bareProgram = fileURLToPath(new URL("../bare-encoder.ts", import.meta.url));
const batch = 8;

/** Number of executions so far, and the nanoseconds that the server spent on them: input, run and output. */
async function encoderTimes(port: number): Promise<{ count: number; ns: number }> {
  const response = JSON.parse((await requestOk(port, "GET", "/v2/models/encoder/stats")).toString("utf8")) as {
    model_stats: {
      batch_stats: { batch_size: number; compute_input: Time; compute_infer: Time; compute_output: Time }[];
    }[];
  };
  const stats = response.model_stats[0]?.batch_stats.find(({ batch_size }) => batch_size === batch);
  if (stats === undefined) return { count: 0, ns: 0 };
  const { compute_input, compute_infer, compute_output } = stats;
  return { count: compute_infer.count, ns: compute_input.ns + compute_infer.ns + compute_output.ns };
}

interface Time {
  readonly count: number;
  readonly ns: number;
}

/** Duration of an execution of the encoder in the server, compared with the library in a plain loop. */
export const encoderRow = {
  name: "encoder",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using directory = await temporaryDirectory();
    const complete = join(directory.path, "whole");
    const repository = join(directory.path, "models");
    await assembleRepository({ packageDirectory: context.oracle.sitePackages, targetDirectory: complete });
    await cp(join(complete, "encoder"), join(repository, "encoder"), { recursive: true });
    const server = await startGalatea({ repositories: [repository] });
    try {
      const measures: Measure[] = [];
      for (const tokens of [8, 64]) {
        const ours: number[] = [];
        const bare: number[] = [];
        for (let round = 0; round < context.rounds; round++) {
          const durationMs = context.quick ? 1000 : 5000;
          const modelPath = join(repository, "encoder", "1", "model.onnx");
          const args = [bareProgram, modelPath, String(batch), String(tokens), String(durationMs)];
          bare.push(1000 / Number((await promisify(execFile)(process.execPath, args)).stdout));
          const before = await encoderTimes(server.httpPort);
          const request = encoderRequest(batch, tokens);
          await runLoad({ port: server.httpPort, request, clients: 1, durationMs, warmUpMs: 0 });
          const after = await encoderTimes(server.httpPort);
          ours.push((1e9 * (after.count - before.count)) / (after.ns - before.ns));
          context.log(`${tokens} tokens: ${ours.at(-1)?.toFixed(1)}/s, bare ${bare.at(-1)?.toFixed(1)}/s`);
        }
        measures.push({
          what: `encoder step, batches of ${batch}, ${tokens} tokens, beside a bare C-API loop`,
          unit: "/s",
          ours,
          oracle: bare,
          goal: { kind: "at least", of: "ratio", value: 0.9 },
        });
      }
      return measures;
    } finally {
      await server.stop();
    }
  },
};
