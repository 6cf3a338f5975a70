import { runLoad } from "../load.ts";
import { addSub, identity } from "../models.ts";
import { addSubRequest, identityJsonRequest } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { alternate, startPair } from "../servers.ts";

const pictureNumbers = 3 * 224 * 224;

/**
 * A picture's numbers as JSON in both directions, and the delay of small concurrent requests. The numbers have 256
 * values, like pixels, so that each text is printed once; numbers that all differ take four times as long to print.
 */
export const jsonNumbersRow = {
  name: "json-numbers",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using pair = await startPair(context, { ...identity, ...addSub });
    const picture = identityJsonRequest(pictureNumbers);
    const timing = { durationMs: context.quick ? 1000 : 4000, warmUpMs: context.quick ? 500 : 1000 };
    const measures: Measure[] = [];
    for (const [clients, ratioMin] of [
      [1, 1],
      [4, null],
    ] as const) {
      const figures = await alternate(context, pair, `pictures at ${clients}`, async (server) => {
        return (await runLoad({ port: server.httpPort, request: picture, clients, ...timing })).perSecond;
      });
      measures.push({
        what: `3x224x224 numbers as JSON through a Python identity model: throughput at ${clients}`,
        unit: "/s",
        ...figures,
        goal: ratioMin === null ? null : { kind: "at least", of: "ratio", value: ratioMin },
      });
    }
    const rise = await alternate(context, pair, "rise of the p99 beside, ms", async ({ httpPort: port }) => {
      const small = { port, request: addSubRequest(), clients: 1, ...timing };
      const alone = await runLoad(small);
      const [beside] = await Promise.all([
        runLoad(small),
        runLoad({ port, request: picture, clients: 1, durationMs: timing.durationMs + timing.warmUpMs, warmUpMs: 0 }),
      ]);
      return (beside.p99Us - alone.p99Us) / 1000;
    });
    measures.push({
      what: "the rise of the p99 of add_sub at 1 client beside one client with such numbers",
      unit: "ms",
      ours: rise.ours,
      oracle: [],
      goal: { kind: "at most", of: "ours", value: 5 },
    });
    return measures;
  },
};
