/** The rows in the order in which they are measured and printed. */
import type { Row } from "../row.ts";
import { addSubRow } from "./add-sub.ts";
import { busyRow } from "./busy.ts";
import { churnRow } from "./churn.ts";
import { encoderRow } from "./encoder.ts";
import { coldInvocationRow, coldMiniLmRow, invokeOverheadRow } from "./hosting.ts";
import { gatewayRow } from "./gateway.ts";
import { fleetCostRow } from "./fleet-cost.ts";
import { grpcAddSubRow } from "./grpc.ts";
import { daliRow } from "./dali.ts";
import { decoupledRow } from "./decoupled.ts";
import { jsonNumbersRow } from "./json-numbers.ts";
import { grpcLargeRow, httpLargeRow, httpNumbersRow } from "./large-messages.ts";
import { latencyRow } from "./latency.ts";
import { memoryRow } from "./memory.ts";
import { miniLmRow } from "./minilm.ts";
import { modelLoadRow } from "./model-load.ts";
import { pipelineEnsembleRow } from "./pipeline-ensemble.ts";
import { pipelineRow } from "./pipeline.ts";
import { pytorchRow } from "./pytorch.ts";
import { recordsRow } from "./records.ts";
import { rivalsRow, rivalsTorchRow } from "./rivals.ts";
import { scaleRow } from "./scale.ts";
import { tensorflowRow } from "./tensorflow.ts";
import { startEmptyRow, startFiftyRow } from "./start.ts";
import { addSubDynamicRow, ensembleRow, identityBinaryRow, identityLargeRow } from "./throughput.ts";
import { transformRow } from "./transform.ts";
import { treesRow } from "./trees.ts";
import { uploadRow } from "./upload.ts";
import { zipfRow } from "./zipf.ts";
import { zipfSpreadRow } from "./zipf-spread.ts";

export const rows: readonly Row[] = [
  addSubRow,
  addSubDynamicRow,
  latencyRow,
  grpcAddSubRow,
  decoupledRow,
  identityBinaryRow,
  identityLargeRow,
  grpcLargeRow,
  httpLargeRow,
  httpNumbersRow,
  jsonNumbersRow,
  ensembleRow,
  miniLmRow,
  encoderRow,
  treesRow,
  pytorchRow,
  tensorflowRow,
  daliRow,
  rivalsRow,
  rivalsTorchRow,
  modelLoadRow,
  coldInvocationRow,
  coldMiniLmRow,
  invokeOverheadRow,
  gatewayRow,
  pipelineRow,
  pipelineEnsembleRow,
  transformRow,
  churnRow,
  startFiftyRow,
  startEmptyRow,
  memoryRow,
  uploadRow,
  recordsRow,
  busyRow,
  zipfRow,
  zipfSpreadRow,
  fleetCostRow,
  scaleRow,
];
