/** Every case of the suite, as data. */
import type { Case } from "../case.ts";
import { batching } from "./batching.ts";
import { bls } from "./bls.ts";
import { compression } from "./compression.ts";
import { container } from "./container.ts";
import { containerStreams } from "./container-streams.ts";
import { brokenModels, modelControl } from "./control.ts";
import { ensembles } from "./ensembles.ts";
import { grpcDecoupled } from "./grpc-decoupled.ts";
import { grpcEnsembles } from "./grpc-ensembles.ts";
import { forwardedHeaders } from "./forwarding.ts";
import { generates } from "./generate.ts";
import { generatesDecoupled } from "./generate-decoupled.ts";
import { grpcInfer, grpcRequestErrors } from "./grpc-infer.ts";
import { grpcServer } from "./grpc-server.ts";
import { grpcStream } from "./grpc-stream.ts";
import { modelHabits } from "./habits.ts";
import { health } from "./health.ts";
import { inferBinary } from "./infer-binary.ts";
import { inferJson } from "./infer-json.ts";
import { metadata } from "./metadata.ts";
import { modelMetrics } from "./metrics.ts";
import { modelResponses, outputs } from "./models.ts";
import { ownedInputs } from "./owned-inputs.ts";
import { programs } from "./programs.ts";
import { pythonInterface } from "./python-interface.ts";
import { reloads } from "./reload.ts";
import { requestErrors } from "./request-errors.ts";
import { warmUps } from "./warm-up.ts";
import { statistics } from "./statistics.ts";

/** The cases by recording file. Cases that compare counts or an index come first. */
export const caseGroups: Readonly<Record<string, readonly Case[]>> = {
  statistics,
  "forwarded-headers": forwardedHeaders,
  "grpc-server": grpcServer,
  health,
  metadata,
  "infer-json": inferJson,
  "infer-binary": inferBinary,
  "request-errors": requestErrors,
  models: modelResponses,
  outputs,
  "owned-inputs": ownedInputs,
  habits: modelHabits,
  "python-utils": pythonInterface,
  metrics: modelMetrics,
  ensembles,
  bls,
  batching,
  compression,
  generate: generates,
  "generate-decoupled": generatesDecoupled,
  control: modelControl,
  "broken-models": brokenModels,
  programs,
  reload: reloads,
  container,
  "container-streams": containerStreams,
  "warm-up": warmUps,
  "grpc-infer": grpcInfer,
  "grpc-request-errors": grpcRequestErrors,
  "grpc-stream": grpcStream,
  "grpc-decoupled": grpcDecoupled,
  "grpc-ensembles": grpcEnsembles,
};
