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

/** What containers of a model were seen to take. */
export interface ModelMemoryRecord {
  /** Of the model: one that was made later under its name is another one. */
  readonly modelCreatedMs: number;
  /** The most that each took, with what it takes without a model; zero for one with many models. */
  readonly mostBytes: readonly number[];
}

/** Models, configurations, endpoints and transform jobs by their names in lower case; tags by the ARN of what has them. */
export interface HostingKinds {
  readonly models: RecordKind<ModelRecord>;
  /** Of the models of the same keys, gone with them. */
  readonly modelMemories: RecordKind<ModelMemoryRecord>;
  readonly configs: RecordKind<EndpointConfigRecord>;
  readonly endpoints: RecordKind<EndpointRecord>;
  readonly transformJobs: RecordKind<TransformJobRecord>;
  /** Of the jobs of the same keys. */
  readonly transformProgress: RecordKind<TransformProgress>;
  readonly components: RecordKind<ComponentRecord>;
  readonly tags: RecordKind<readonly Tag[]>;
  /** Requests that wait in queues, in the order in which they were accepted. */
  readonly asyncInvocations: RecordKind<AsyncInvocation>;
  /** Of the requests of the same keys, in base64. */
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
