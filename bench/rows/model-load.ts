import { requestOk, timedMs } from "../send-request.ts";
import { addSub } from "../models.ts";
import { addSubBody } from "../requests.ts";
import { median, type BenchContext, type Measure } from "../row.ts";
import { alternate, startPair } from "../servers.ts";

/** Time from the load request to READY for a model whose imports are warm. */
export const modelLoadRow = {
  name: "model-load",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using pair = await startPair(context, addSub, {
      flags: ["--model-control-mode=explicit", "--load-model=add_sub"],
    });
    const figures = await alternate(context, pair, "load", async (server) => {
      const loads: number[] = [];
      for (let load = 0; load < (server.kind === "oracle" ? 2 : 10); load++) {
        await requestOk(server.httpPort, "POST", "/v2/repository/models/add_sub/unload");
        loads.push(await timedMs(() => requestOk(server.httpPort, "POST", "/v2/repository/models/add_sub/load")));
        await requestOk(server.httpPort, "POST", "/v2/models/add_sub/infer", addSubBody);
      }
      return median(loads);
    });
    return [
      {
        what: "load of a Python model whose imports are warm",
        unit: "ms",
        ...figures,
        goal: { kind: "at most", of: "ours", value: 10 },
      },
    ];
  },
};
