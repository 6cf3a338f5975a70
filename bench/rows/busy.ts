import { startBarePlatform } from "../bare-platform.ts";
import { requestOk } from "../send-request.ts";
import { runRounds } from "../load.ts";
import { addSub } from "../models.ts";
import { withNeighbours } from "../neighbours.ts";
import { endpointHeaders, invocationBytes, startPlatform } from "../platform.ts";
import { addSubBody } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { temporaryDirectory } from "../servers.ts";

const endpoint = "one";
const rowsPerSecond = 1000;

/**
 * One client of an endpoint, alone and while metrics are recorded and large objects are uploaded in parts. The same
 * client, recorder and uploader also run against a bare server of `node:http`, which responds at once and drops
 * everything. This shows their own share of the delay: the bare server has no container, model, metrics or disk.
 */
export const busyRow = {
  name: "busy",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using data = await temporaryDirectory();
    await using platform = await startPlatform(data.path);
    await platform.putArchive("one/add_sub.tar.gz", addSub);
    await platform.createPipeline(endpoint, [{ key: "one/add_sub.tar.gz", environment: {} }]);
    const path = `/endpoints/${endpoint}/invocations`;
    const response = await requestOk(platform.port, "POST", path, addSubBody, endpointHeaders);
    await using bare = await startBarePlatform(response.toString());
    const uploadMebibytes = context.quick ? 128 : 1024;
    const servers = { ours: platform.port, bare: bare.port };
    const alone: Record<keyof typeof servers, number[]> = { ours: [], bare: [] };
    const busy: Record<keyof typeof servers, number[]> = { ours: [], bare: [] };
    for (let round = 0; round < Math.min(context.rounds, 5); round++) {
      for (const name of ["ours", "bare"] as const) {
        const port = servers[name];
        alone[name].push(await p99Ms(port, context));
        const { result, done } = await withNeighbours({ port, uploadMebibytes, rowsPerSecond }, () =>
          p99Ms(port, context),
        );
        busy[name].push(result);
        const [rate, speed] = [done.rows / done.rowsSeconds, done.mebibytes / done.mebibytesSeconds];
        context.log(
          `${name}: p99 alone ${alone[name].at(-1)?.toFixed(2)} ms, beside ${result.toFixed(2)} ms: ` +
            `${rate.toFixed(0)} rows/s, ${done.mebibytes} MiB at ${speed.toFixed(0)} MiB/s`,
        );
      }
    }
    return [
      {
        what: `InvokeEndpoint at one client while ${rowsPerSecond} rows a second are recorded and objects of ${uploadMebibytes} MiB are uploaded, p99, beside a bare server`,
        unit: "ms",
        ours: busy.ours,
        oracle: busy.bare,
        goal: { kind: "at most", of: "ours", value: 5 },
      },
      {
        what: "the same with nothing beside it, p99, beside a bare server",
        unit: "ms",
        ours: alone.ours,
        oracle: alone.bare,
        goal: null,
      },
    ];
  },
};

async function p99Ms(port: number, { quick }: BenchContext): Promise<number> {
  const timing = { durationMs: quick ? 300 : 4000, warmUpMs: quick ? 100 : 500 };
  const request = invocationBytes(endpoint, addSubBody);
  return (await runRounds({ ports: [port], request, ...timing })).p99Us / 1000;
}
