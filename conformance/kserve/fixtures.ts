import { blsModels } from "./bls-models.ts";
import { controlModels } from "./control-models.ts";
import { habitModels } from "./habit-models.ts";
import type { ModelSource } from "./model-source.ts";
import { metricModels } from "./metric-models.ts";
import { models } from "./models.ts";
import { programModels } from "./program-models.ts";
import { mixedModels, streamedModels } from "./streamed-models.ts";
import { reloadModels } from "./reload-models.ts";
import { warmModels } from "./warm-models.ts";

/** One started server that cases run against, the same for both. */
export interface Fixture {
  readonly models: Readonly<Record<string, ModelSource>>;
  readonly flags: readonly string[];
  /** What Triton is told besides. */
  readonly oracleFlags?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** One model that fails must not hide every other case. */
const keepGoing = "--exit-on-error=false";

export const fixtures = {
  /** All models at start, model control off, a default model for the container contract. */
  main: { models, flags: ["--id=conformance", keepGoing], env: { SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "add_sub" } },
  /** Nothing but add_sub at start; models come and go. */
  control: {
    models: controlModels,
    flags: ["--model-control-mode=explicit", "--load-model=add_sub", keepGoing],
    env: {},
  },
  /** Headers become parameters of requests. */
  forwarding: {
    models: { report: models.report },
    flags: ["--http-header-forward-pattern=(x-.*|Y-.*)", "--grpc-header-forward-pattern=(x-.*|Y-.*|triton_other)"],
    env: {},
  },
  /** Nothing at start, and one model that cannot be read. */
  fresh: {
    models: { add_sub: models.add_sub, broken_unknown_field: controlModels.broken_unknown_field },
    flags: ["--model-control-mode=explicit", keepGoing],
    env: {},
  },
  /** Models with ensembles above them, all still to be loaded. */
  reload: { models: reloadModels, flags: ["--model-control-mode=explicit"], env: {} },
  /** Programs that say something while they are loaded. */
  programs: { models: programModels, flags: ["--model-control-mode=explicit"], env: {} },
  /** Programs that do what those of real repositories do, all at start. */
  habits: { models: habitModels, flags: [keepGoing], env: {} },
  /** Models that make metrics of their own, all at start. */
  metrics: { models: metricModels, flags: [keepGoing], env: {} },
  /** Models with `model_warmup`, all still to be loaded. */
  warm: { models: warmModels, flags: ["--model-control-mode=explicit"], env: {} },
  /** Ensembles with decoupled steps, and some that cannot be loaded. */
  streamed: {
    models: { ...streamedModels, ...mixedModels },
    flags: [
      "--model-control-mode=explicit",
      ...Object.keys(streamedModels).map((name) => `--load-model=${name}`),
      keepGoing,
    ],
    env: {},
  },
  /** Models that call others, and load them. */
  bls: {
    models: blsModels,
    flags: [
      "--model-control-mode=explicit",
      ...["add_sub", "upper", "errors", "report", "chain", "streams", "spoils", "identity_all", "identity_matrix"].map(
        (name) => `--load-model=${name}`,
      ),
      "--load-model=calls",
      "--load-model=calls_async",
    ],
    env: {},
  },
  /** A model that cannot be loaded does not end the server, but keeps it from being ready. */
  partly: {
    models: { add_sub: models.add_sub, raises_in_initialize: controlModels.raises_in_initialize },
    flags: [keepGoing],
    env: {},
  },
  /** The same without strict readiness. */
  lenient: {
    models: { add_sub: models.add_sub, raises_in_initialize: controlModels.raises_in_initialize },
    flags: [keepGoing, "--strict-readiness=false"],
    env: { SAGEMAKER_TRITON_PING_MODE: "live" },
  },
  /** A decoupled model behind the container contract. */
  decoupled: {
    models: { streams: models.streams },
    flags: [],
    env: { SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "streams" },
  },
  /** The same, called by the generate extension; Triton 2.51 does not know the variable and infers. */
  generate: {
    models: { streams: models.streams },
    flags: [],
    env: { SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "streams", SAGEMAKER_TRITON_INFERENCE_TYPE: "generate" },
  },
  generate_stream: {
    models: { streams: models.streams },
    flags: [],
    env: { SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "streams", SAGEMAKER_TRITON_INFERENCE_TYPE: "generate_stream" },
  },
  /** Multi-model hosting: archives unpacked below /opt/ml/models are loaded on request. */
  multi: {
    models: {},
    flags: ["--model-control-mode=explicit"],
    // As its own entry point for the platform does; our namespaces need no flag.
    oracleFlags: ["--model-namespacing=true"],
    env: { SAGEMAKER_MULTI_MODEL: "true", SAGEMAKER_TRITON_PING_MODE: "live" },
  },
} as const satisfies Record<string, Fixture>;

export type FixtureName = keyof typeof fixtures;
export const fixtureNames = Object.keys(fixtures) as readonly FixtureName[];
