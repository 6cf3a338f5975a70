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

/** The models, flags and variables of a server that cases run against. */
export interface Fixture {
  readonly models: Readonly<Record<string, ModelSource>>;
  readonly flags: readonly string[];
  /** Additional flags for Triton. */
  readonly oracleFlags?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** A failed model must not prevent all other cases. */
const keepGoing = "--exit-on-error=false";

export const fixtures = {
  /** All models are loaded at the start, without model control, and with a default model for the container API. */
  main: { models, flags: ["--id=conformance", keepGoing], env: { SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "add_sub" } },
  /** Only add_sub is loaded at the start; cases load and unload models. */
  control: {
    models: controlModels,
    flags: ["--model-control-mode=explicit", "--load-model=add_sub", keepGoing],
    env: {},
  },
  /** Headers are forwarded as parameters of requests. */
  forwarding: {
    models: { report: models.report },
    flags: ["--http-header-forward-pattern=(x-.*|Y-.*)", "--grpc-header-forward-pattern=(x-.*|Y-.*|triton_other)"],
    env: {},
  },
  /** No model is loaded at the start, and one cannot be read. */
  fresh: {
    models: { add_sub: models.add_sub, broken_unknown_field: controlModels.broken_unknown_field },
    flags: ["--model-control-mode=explicit", keepGoing],
    env: {},
  },
  /** Models and ensembles of them; cases load them. */
  reload: { models: reloadModels, flags: ["--model-control-mode=explicit"], env: {} },
  /** Programs whose load prints or reports something. */
  programs: { models: programModels, flags: ["--model-control-mode=explicit"], env: {} },
  /** Programs with typical code of real repositories, all loaded at the start. */
  habits: { models: habitModels, flags: [keepGoing], env: {} },
  /** Models with custom metrics, all loaded at the start. */
  metrics: { models: metricModels, flags: [keepGoing], env: {} },
  /** Models with `model_warmup`; cases load them. */
  warm: { models: warmModels, flags: ["--model-control-mode=explicit"], env: {} },
  /** Ensembles with decoupled steps, including invalid ones. */
  streamed: {
    models: { ...streamedModels, ...mixedModels },
    flags: [
      "--model-control-mode=explicit",
      ...Object.keys(streamedModels).map((name) => `--load-model=${name}`),
      keepGoing,
    ],
    env: {},
  },
  /** Models that call and load other models. */
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
  /** An invalid model does not end the server, but keeps it from being ready. */
  partly: {
    models: { add_sub: models.add_sub, raises_in_initialize: controlModels.raises_in_initialize },
    flags: [keepGoing],
    env: {},
  },
  /** The same models without strict readiness. */
  lenient: {
    models: { add_sub: models.add_sub, raises_in_initialize: controlModels.raises_in_initialize },
    flags: [keepGoing, "--strict-readiness=false"],
    env: { SAGEMAKER_TRITON_PING_MODE: "live" },
  },
  /** A decoupled model behind the container API. */
  decoupled: {
    models: { streams: models.streams },
    flags: [],
    env: { SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "streams" },
  },
  /** The same model with the generate extension; Triton 2.51 does not know the variable and uses infer. */
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
  /** Multi-model hosting: archives below /opt/ml/models are loaded on request. */
  multi: {
    models: {},
    flags: ["--model-control-mode=explicit"],
    // Triton's entry point for SageMaker sets this flag; our namespaces need none.
    oracleFlags: ["--model-namespacing=true"],
    env: { SAGEMAKER_MULTI_MODEL: "true", SAGEMAKER_TRITON_PING_MODE: "live" },
  },
} as const satisfies Record<string, Fixture>;

export type FixtureName = keyof typeof fixtures;
export const fixtureNames = Object.keys(fixtures) as readonly FixtureName[];
