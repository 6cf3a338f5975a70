import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { runRounds } from "../load.ts";
import { addSub } from "../models.ts";
import type { NeighboursDone } from "../neighbours-worker.ts";
import { invocationBytes, startPlatform, type Platform } from "../platform.ts";
import { addSubBody } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { temporaryDirectory } from "../servers.ts";

const endpoint = "one";
const rowsPerSecond = 1000;

/** One client of an endpoint, alone and while metrics are recorded and a large object is uploaded in parts. */
export const busyRow = {
  name: "busy",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using data = await temporaryDirectory();
    await using platform = await startPlatform(data.path);
    await platform.putArchive("one/add_sub.tar.gz", addSub);
    await platform.createPipeline(endpoint, [{ key: "one/add_sub.tar.gz", environment: {} }]);
    const uploadMebibytes = context.quick ? 128 : 1024;
    const [alone, beside]: [number[], number[]] = [[], []];
    for (let round = 0; round < Math.min(context.rounds, 5); round++) {
      alone.push(await p99Ms(platform, context));
      const workerData = { port: platform.port, uploadMebibytes, rowsPerSecond };
      const neighbours = new Worker(new URL("../neighbours-worker.ts", import.meta.url), { workerData });
      const told = once(neighbours, "message") as Promise<[NeighboursDone]>;
      const ended = once(neighbours, "exit");
      const [figure, [done]] = await Promise.all([p99Ms(platform, context), told, ended]);
      if (done.seconds < measuredSeconds(context)) throw new Error("the upload ended while the clock still ran");
      beside.push(figure);
      const rate = (done.rows / done.seconds).toFixed(0);
      context.log(
        `p99 alone ${alone.at(-1)?.toFixed(2)} ms, beside ${figure.toFixed(2)} ms: ` +
          `${rate} rows/s, ${uploadMebibytes} MiB in ${done.seconds.toFixed(1)} s`,
      );
    }
    return [
      {
        what: `InvokeEndpoint at one client while ${rowsPerSecond} rows a second are recorded and ${uploadMebibytes} MiB are uploaded, p99`,
        unit: "ms",
        ours: beside,
        oracle: [],
        goal: { kind: "at most", of: "ours", value: 5 },
      },
      { what: "the same with nothing beside it, p99", unit: "ms", ours: alone, oracle: [], goal: null },
    ];
  },
};

const timingOf = ({ quick }: BenchContext) => ({ durationMs: quick ? 300 : 2000, warmUpMs: quick ? 100 : 500 });

function measuredSeconds(context: BenchContext): number {
  const { durationMs, warmUpMs } = timingOf(context);
  return (durationMs + warmUpMs) / 1000;
}

async function p99Ms({ port }: Platform, context: BenchContext): Promise<number> {
  const request = invocationBytes(endpoint, addSubBody);
  return (await runRounds({ ports: [port], request, ...timingOf(context) })).p99Us / 1000;
}
