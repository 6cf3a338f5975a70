/** Every case of the suite, as data. */
import type { Case } from "../case.ts";
import { batching } from "./batching.ts";
import { compression } from "./compression.ts";
import { container } from "./container.ts";
import { brokenModels, modelControl } from "./control.ts";
import { ensembles } from "./ensembles.ts";
import { health } from "./health.ts";
import { inferBinary } from "./infer-binary.ts";
import { inferJson } from "./infer-json.ts";
import { metadata } from "./metadata.ts";
import { modelAnswers, outputs } from "./models.ts";
import { reloads } from "./reload.ts";
import { requestErrors } from "./request-errors.ts";
import { statistics } from "./statistics.ts";

/** By recording file. Statistics come first where counts are compared. */
export const caseGroups: Readonly<Record<string, readonly Case[]>> = {
  statistics,
  health,
  metadata,
  "infer-json": inferJson,
  "infer-binary": inferBinary,
  "request-errors": requestErrors,
  models: modelAnswers,
  outputs,
  ensembles,
  batching,
  compression,
  control: modelControl,
  "broken-models": brokenModels,
  reload: reloads,
  container,
};
