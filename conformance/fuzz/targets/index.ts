import type { FuzzTarget } from "../target.ts";
import { linearLearnerArchives, mleapBundles, xgboostFiles } from "./algorithm-files.ts";
import { configText } from "./config-text.ts";
import { daliFile } from "./dali-file.ts";
import { grpcMessage } from "./grpc-message.ts";
import { grpcServer } from "./grpc-server.ts";
import { httpBody } from "./http-body.ts";
import { httpServer } from "./http-server.ts";
import { onnxFile } from "./onnx-file.ts";
import { treeFiles } from "./tree-files.ts";
import { workerWire } from "./worker-wire.ts";

/** Every attacked interface. */
export const targets: readonly FuzzTarget[] = [
  httpBody,
  grpcMessage,
  configText,
  workerWire,
  httpServer,
  grpcServer,
  onnxFile,
  daliFile,
  treeFiles,
  xgboostFiles,
  linearLearnerArchives,
  mleapBundles,
];
