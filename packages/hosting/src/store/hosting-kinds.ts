import type { Logger } from "@galatea/base";
import type { Documents } from "../records/index.ts";
import type { AsyncInvocation } from "../async-inference/index.ts";
import type { ComponentRecord } from "../components/index.ts";
import type { EndpointConfigRecord, ModelRecord } from "../definitions/index.ts";
import type { EndpointRecord } from "../endpoints/index.ts";
import type { TransformJobRecord, TransformProgress } from "../transforms/index.ts";
import { ordersOf } from "./listing.ts";
import { RecordKind } from "./record-kind.ts";

export interface Tag {
  readonly Key: string;
  readonly Value: string;
}

/** The measured memory of a model's containers. */
export interface ModelMemoryRecord {
  /** Creation time of the model: a later model with the same name has another one. */
  readonly modelCreatedMs: number;
  /** Maximum bytes of each container, including its own memory without a model; zero for a multi-model one. */
  readonly mostBytes: readonly number[];
}

/** Models, configurations, endpoints and transform jobs by lower-cased name; tags by ARN. */
export interface HostingKinds {
  readonly models: RecordKind<ModelRecord>;
  /** By the keys of the models, and deleted with them. */
  readonly modelMemories: RecordKind<ModelMemoryRecord>;
  readonly configs: RecordKind<EndpointConfigRecord>;
  readonly endpoints: RecordKind<EndpointRecord>;
  readonly transformJobs: RecordKind<TransformJobRecord>;
  /** By the keys of the jobs. */
  readonly transformProgress: RecordKind<TransformProgress>;
  readonly components: RecordKind<ComponentRecord>;
  readonly tags: RecordKind<readonly Tag[]>;
  /** Queued requests, in the order of acceptance. */
  readonly asyncInvocations: RecordKind<AsyncInvocation>;
  /** Base64, by the keys of the requests. */
  readonly asyncPayloads: RecordKind<string>;
}

export function hostingKinds(documents: Documents, logger: Logger): HostingKinds {
  const listed = { documents, logger, orders: ordersOf };
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
