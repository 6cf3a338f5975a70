import type { Logger } from "@galatea/base";
import type { Documents } from "../records/index.ts";
import type { AsyncInvocation } from "../async-inference/index.ts";
import type { ComponentRecord } from "../components/index.ts";
import type { EndpointConfigRecord, ModelRecord } from "../definitions/index.ts";
import type { EndpointRecord } from "../endpoints/index.ts";
import type { TransformJobRecord, TransformProgress } from "../transforms/index.ts";
import { sortValues } from "./listing.ts";
import { RecordKind } from "./record-kind.ts";

/** SageMaker's Tag, with its member names. */
export interface Tag {
  readonly Key: string;
  readonly Value: string;
}

/** The measured memory of a model's containers. */
export interface ModelMemoryRecord {
  /** Creation time of the model. It distinguishes the model from a later one of the same name. */
  readonly modelCreatedMs: number;
  /** Maximum measured bytes of each container, including the memory of the server itself; zero for a multi-model container. */
  readonly mostBytes: readonly number[];
}

/** The kinds of hosting's records. Keys are lower-case names, except for tags (ARNs) and requests. */
export interface HostingKinds {
  readonly models: RecordKind<ModelRecord>;
  /** Measured memory of models, with the same keys as the models; deleted with the model. */
  readonly modelMemories: RecordKind<ModelMemoryRecord>;
  readonly configs: RecordKind<EndpointConfigRecord>;
  readonly endpoints: RecordKind<EndpointRecord>;
  readonly transformJobs: RecordKind<TransformJobRecord>;
  /** Progress of transform jobs, with the same keys as the jobs. */
  readonly transformProgress: RecordKind<TransformProgress>;
  readonly components: RecordKind<ComponentRecord>;
  readonly tags: RecordKind<readonly Tag[]>;
  /** Queued asynchronous requests. Their keys sort in the order of acceptance. */
  readonly asyncInvocations: RecordKind<AsyncInvocation>;
  /** Inputs from request bodies as Base64, with the same keys as the requests. */
  readonly asyncPayloads: RecordKind<string>;
}

export function hostingKinds(documents: Documents, logger: Logger): HostingKinds {
  const listed = { documents, logger, orders: sortValues };
  const unlisted = { documents, logger, orders: () => ({}) };
  return {
    models: new RecordKind<ModelRecord>("model", listed),
    modelMemories: new RecordKind<ModelMemoryRecord>("model-memory", unlisted),
    configs: new RecordKind<EndpointConfigRecord>("endpoint-config", listed),
    endpoints: new RecordKind<EndpointRecord>("endpoint", listed),
    transformJobs: new RecordKind<TransformJobRecord>("transform-job", listed),
    transformProgress: new RecordKind<TransformProgress>("transform-progress", unlisted),
    components: new RecordKind<ComponentRecord>("inference-component", listed),
    tags: new RecordKind<readonly Tag[]>("tags", unlisted),
    asyncInvocations: new RecordKind<AsyncInvocation>("async-invocation", unlisted),
    asyncPayloads: new RecordKind<string>("async-payload", unlisted),
  };
}
