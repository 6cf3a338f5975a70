import type { RunningServer } from "../../conformance/environments/index.ts";
import { requestOk } from "../send-request.ts";
import { manyAddSub } from "../models.ts";
import { treeMemory } from "../processes.ts";
import { addSubBody } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { startPair } from "../servers.ts";

const requestsPerModel = 10;

/** Private pages that each additional Python model costs, after ten responses. */
export const memoryRow = {
  name: "memory",
  async measure(context: BenchContext): Promise<Measure[]> {
    const count = context.quick ? 10 : 200;
    await using pair = await startPair(context, manyAddSub(count), { flags: ["--model-control-mode=explicit"] });
    const perModel = async (server: RunningServer) => {
      const before = await treeMemory(server.pid);
      for (let model = 0; model < count; model++) {
        await requestOk(server.httpPort, "POST", `/v2/repository/models/add_sub_${model}/load`);
        for (let request = 0; request < requestsPerModel; request++) {
          await requestOk(server.httpPort, "POST", `/v2/models/add_sub_${model}/infer`, addSubBody);
        }
      }
      const after = await treeMemory(server.pid);
      context.log(
        `${server.kind}: ${after.processCount} processes, ${(after.proportionalBytes / 1e6).toFixed(0)} MB proportional`,
      );
      return (after.privateBytes - before.privateBytes) / count / 1e6;
    };
    return [
      {
        what: `private memory per Python model, ${count} loaded`,
        unit: "MB",
        ours: [await perModel(pair.galatea)],
        oracle: [await perModel(pair.oracle)],
        goal: { kind: "at most", of: "ours", value: 3 },
      },
    ];
  },
};
