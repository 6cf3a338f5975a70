import { runGrpcLoad } from "../grpc-load.ts";
import { addSub } from "../models.ts";
import { addSubMessage } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { alternate, startPair } from "../servers.ts";

/** The Python backend's smallest request over gRPC. */
export const grpcAddSubRow = {
  name: "grpc-add-sub",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using pair = await startPair(context, addSub);
    const run = (port: number, clients: number) =>
      runGrpcLoad({
        port,
        path: "/inference.GRPCInferenceService/ModelInfer",
        message: addSubMessage(),
        clients,
        durationMs: context.quick ? 500 : 4000,
        warmUpMs: context.quick ? 200 : 1000,
      });
    const alone = await alternate(context, pair, "p50 at 1", async (server) => (await run(server.grpcPort, 1)).p50Us);
    const many = await alternate(context, pair, "throughput at 32", async (server) => {
      return (await run(server.grpcPort, 32)).perSecond;
    });
    return [
      {
        what: "Python add_sub, gRPC: p50 at 1 client",
        unit: "us",
        ...alone,
        goal: { kind: "at most", of: "ratio", value: 0.6 },
      },
      {
        what: "Python add_sub, gRPC: throughput at 32",
        unit: "/s",
        ...many,
        goal: { kind: "at least", of: "ratio", value: 1.2 },
      },
    ];
  },
};
