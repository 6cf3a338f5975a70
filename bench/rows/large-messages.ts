import { runGrpcLoad } from "../grpc-load.ts";
import { runLoad } from "../load.ts";
import { measureLoad, type LoadCase } from "../load-figures.ts";
import { identity } from "../models.ts";
import { identityJsonRequest, identityMessage, identityRequest } from "../requests.ts";
import type { BenchContext, Measure, Row } from "../row.ts";
import { startPair } from "../servers.ts";

const tensorBytes = 1_000_000;
const numberCount = 16_384;

type Goals = LoadCase["goals"];

/** Rows that differ only in the message that a Python identity model returns, and their goals by the number of clients. */
const identityRow = (
  name: string,
  what: string,
  load: () => LoadCase["load"],
  goals: readonly (readonly [clients: number, goals: Goals])[],
): Row => ({
  name,
  async measure(context: BenchContext): Promise<Measure[]> {
    await using pair = await startPair(context, identity);
    const measures: Measure[] = [];
    const same = { what, load: load() };
    for (const [clients, ratios] of goals)
      measures.push(...(await measureLoad(context, pair, { ...same, clients, goals: ratios })));
    return measures;
  },
});

const http = (request: Uint8Array): LoadCase["load"] => {
  return (server, timing) => runLoad({ port: server.httpPort, request, ...timing });
};

export const grpcLargeRow = identityRow(
  "grpc-large",
  "1 MB through a Python identity model, gRPC",
  () => {
    const call = { path: "/inference.GRPCInferenceService/ModelInfer", message: identityMessage(tensorBytes) };
    return (server, timing) => runGrpcLoad({ port: server.grpcPort, ...call, ...timing });
  },
  [
    [1, { throughputMin: 1, p99Max: 1.5 }],
    [8, {}],
    [32, {}],
  ],
);

export const httpLargeRow = identityRow(
  "http-large",
  "1 MB through a Python identity model, HTTP binary",
  () => http(identityRequest(tensorBytes)),
  [
    [1, { throughputMin: 1.3, p99Max: 1 }],
    [8, { throughputMin: 1.3 }],
  ],
);

export const httpNumbersRow = identityRow(
  "http-numbers",
  "16,384 numbers as JSON through a Python identity model",
  () => http(identityJsonRequest(numberCount)),
  [
    [1, { throughputMin: 0.9, p99Max: 1.5 }],
    [8, {}],
    [32, {}],
  ],
);
