import { runLoad } from "../load.ts";
import { addSub } from "../models.ts";
import { addSubRequest } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { alternate, startPair } from "../servers.ts";

/** The Python backend's smallest request, without batching. */
export const addSubRow = {
  name: "add-sub",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using pair = await startPair(context, addSub);
    const run = (clients: number) => ({
      request: addSubRequest(),
      clients,
      durationMs: context.quick ? 500 : 4000,
      warmUpMs: context.quick ? 200 : 1000,
    });
    const alone = await alternate(context, pair, "p50 at 1", async (server) => {
      const result = await runLoad({ port: server.httpPort, ...run(1) });
      return result.p50Us;
    });
    const measures: Measure[] = [
      {
        what: "Python add_sub, HTTP JSON: p50 at 1 client",
        unit: "us",
        ...alone,
        goal: { kind: "at most", of: "ratio", value: 0.5 },
      },
    ];
    for (const [clients, value] of [
      [8, 1.5],
      [32, 1],
    ] as const) {
      const figures = await alternate(context, pair, `throughput at ${clients}`, async (server) => {
        const result = await runLoad({ port: server.httpPort, ...run(clients) });
        return result.perSecond;
      });
      measures.push({
        what: `Python add_sub, HTTP JSON: throughput at ${clients}`,
        unit: "/s",
        ...figures,
        goal: { kind: "at least", of: "ratio", value },
      });
    }
    return measures;
  },
};
