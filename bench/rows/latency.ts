import { runLoad } from "../load.ts";
import { addSub, addSubDynamic, manyAddSub, threeSteps } from "../models.ts";
import { addSubBatchedRequest, addSubRequest, pipelineRequest } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { alternateAll, startPair, type BenchModels } from "../servers.ts";

const modelCount = 100;
const warmUpAnswers = 1000;

interface Case {
  readonly what: string;
  readonly request: Uint8Array;
  readonly p50RatioMax: number;
}

const cases: readonly Case[] = [
  { what: "Python add_sub", request: addSubRequest(), p50RatioMax: 0.4 },
  {
    what: "add_sub with dynamic_batching { }",
    request: addSubBatchedRequest("add_sub_dynamic"),
    p50RatioMax: 0.6,
  },
  { what: "ensemble of three Python steps", request: pipelineRequest(), p50RatioMax: 0.6 },
];

function models(count: number): BenchModels {
  const measured = { ...addSub, ...threeSteps, add_sub_dynamic: addSubDynamic["add_sub"]! };
  return { ...measured, ...manyAddSub(count - Object.keys(measured).length) };
}

/** Waits for a fixed number of responses, however slow the server is. */
async function warmUp(port: number, request: Uint8Array): Promise<void> {
  for (let responseCount = 0; responseCount < warmUpAnswers;)
    responseCount += (await runLoad({ port, request, clients: 1, durationMs: 250, warmUpMs: 0 })).responses;
}

/** Latency for a single client while many idle models are loaded. */
export const latencyRow = {
  name: "latency",
  async measure(context: BenchContext): Promise<Measure[]> {
    const count = context.quick ? 10 : modelCount;
    await using pair = await startPair(context, models(count));
    const measures: Measure[] = [];
    for (const { what, request, p50RatioMax } of cases) {
      for (const server of [pair.galatea, pair.oracle]) await warmUp(server.httpPort, request);
      const [p50, p99] = await alternateAll(context, pair, [`${what} p50`, `${what} p99`], async (server) => {
        const durationMs = context.quick ? 500 : 4000;
        const result = await runLoad({ port: server.httpPort, request, clients: 1, durationMs, warmUpMs: 200 });
        return [result.p50Us, result.p99Us];
      });
      const measured = `${what} at 1 client, ${count} models loaded`;
      measures.push({
        what: `${measured}: p50`,
        unit: "us",
        ...p50!,
        goal: { kind: "at most", of: "ratio", value: p50RatioMax },
      });
      measures.push({
        what: `${measured}: p99`,
        unit: "us",
        ...p99!,
        goal: { kind: "at most", of: "ratio", value: 1 },
      });
    }
    return measures;
  },
};
