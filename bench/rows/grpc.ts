import { runGrpcLoad } from "../grpc-load.ts";
import { measureLoad, type LoadCase } from "../load-figures.ts";
import { addSub } from "../models.ts";
import { addSubMessage } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { startPair } from "../servers.ts";

/** The Python backend's smallest request over gRPC. */
export const grpcAddSubRow = {
  name: "grpc-add-sub",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using pair = await startPair(context, addSub);
    const load: LoadCase["load"] = (server, timing) =>
      runGrpcLoad({
        port: server.grpcPort,
        path: "/inference.GRPCInferenceService/ModelInfer",
        message: addSubMessage(),
        ...timing,
      });
    const what = "Python add_sub, gRPC";
    return [
      ...(await measureLoad(context, pair, { what, load, clients: 1, goals: { p50Max: 0.6, p99Max: 1 } })),
      ...(await measureLoad(context, pair, { what, load, clients: 32, goals: { throughputMin: 1.2 } })),
    ];
  },
};
