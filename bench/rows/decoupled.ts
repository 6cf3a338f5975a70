import { runGrpcLoad } from "../grpc-load.ts";
import { decoupled } from "../models.ts";
import { decoupledMessage } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { alternate, startPair } from "../servers.ts";

const answersPerRequest = 100;

/** A model that sends many responses to a request, over one gRPC stream. */
export const decoupledRow = {
  name: "decoupled",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using pair = await startPair(context, decoupled);
    const figures = await alternate(context, pair, "answers per second", async (server) => {
      const result = await runGrpcLoad({
        port: server.grpcPort,
        path: "/inference.GRPCInferenceService/ModelStreamInfer",
        message: decoupledMessage(answersPerRequest),
        streamedAnswers: answersPerRequest,
        clients: 1,
        durationMs: context.quick ? 500 : 4000,
        warmUpMs: context.quick ? 200 : 1000,
      });
      return result.perSecond * answersPerRequest;
    });
    return [
      {
        what: `decoupled model, ${answersPerRequest} answers to a request over a gRPC stream: answers`,
        unit: "/s",
        ...figures,
        goal: { kind: "at least", of: "ratio", value: 2 },
      },
    ];
  },
};
