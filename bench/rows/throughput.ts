import { runLoad } from "../load.ts";
import { addSubDynamic, identity, threeSteps } from "../models.ts";
import { addSubBatchedRequest, identityRequest, pipelineRequest } from "../requests.ts";
import type { BenchContext, Measure, Row } from "../row.ts";
import { alternate, startPair, type BenchModels } from "../servers.ts";

interface ThroughputRow {
  readonly name: string;
  readonly what: string;
  readonly models: BenchModels;
  readonly request: () => Uint8Array;
  readonly clients: readonly number[];
  readonly ratioMin: number;
}

/** Rows that differ only in models, request, clients and goal. */
const throughputRow = (row: ThroughputRow): Row => ({
  name: row.name,
  async measure(context: BenchContext) {
    await using pair = await startPair(context, row.models);
    const request = row.request();
    const measures: Measure[] = [];
    for (const clients of row.clients) {
      const figures = await alternate(context, pair, `${row.name} at ${clients}`, async (server) => {
        const result = await runLoad({
          port: server.httpPort,
          request,
          clients,
          durationMs: context.quick ? 500 : 4000,
          warmUpMs: context.quick ? 200 : 1000,
        });
        return result.perSecond;
      });
      const what = `${row.what}: throughput at ${clients}`;
      measures.push({ what, unit: "/s", ...figures, goal: { kind: "at least", of: "ratio", value: row.ratioMin } });
    }
    return measures;
  },
});

export const addSubDynamicRow = throughputRow({
  name: "add-sub-dynamic",
  what: "Python add_sub with dynamic_batching { }",
  models: addSubDynamic,
  request: addSubBatchedRequest,
  clients: [32],
  ratioMin: 1,
});

export const identityBinaryRow = throughputRow({
  name: "identity-binary",
  what: "1 MB through a Python identity model, binary",
  models: identity,
  request: () => identityRequest(1_000_000),
  clients: [8],
  ratioMin: 1.3,
});

/** Larger than the memory that stays allocated without use: if free memory were released at once, each request would cause page faults. */
export const identityLargeRow = throughputRow({
  name: "identity-binary-16",
  what: "16 MB through a Python identity model, binary",
  models: identity,
  request: () => identityRequest(16_000_000),
  clients: [1, 4],
  ratioMin: 1.3,
});

export const ensembleRow = throughputRow({
  name: "ensemble",
  what: "ensemble of three small Python steps",
  models: threeSteps,
  request: pipelineRequest,
  clients: [8],
  ratioMin: 2,
});
