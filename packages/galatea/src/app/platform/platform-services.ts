import { randomBytes, randomUUID } from "node:crypto";
import {
  awsServices,
  ensureRole,
  GroupFilters,
  lazyLogQueries,
  WriterQuotas,
  openDashboardStore,
  openIdentityStore,
  openMetricFilterStore,
  StsSessions,
  type ServiceRow,
} from "@galatea/aws";
import type { Clock, Logger } from "@galatea/base";
import type { BucketStore } from "@galatea/hosting/objects";
import type { Hosting, LogStreams } from "@galatea/hosting";
import type { MetricStore } from "@galatea/base/metrics";
import type { Documents } from "@galatea/hosting/records";
import type { Topics } from "@galatea/aws/topics";
import type { InstancePermissions } from "@galatea/aws/instance-permissions";
import type { ScaledHosting } from "./platform-scaling.ts";

/** Maximum size of an invocation's body in bytes, as in SageMaker. */
export const requestBytesMax = 6 * 2 ** 20;
const sessionsMax = 10_000;
/** The role that get_execution_role() of the `sagemaker` SDK returns. */
export const executionRoleName = "AmazonSageMaker-DefaultRole";

export interface ServicesDependencies {
  readonly hosting: Hosting;
  readonly store: BucketStore;
  readonly logs: LogStreams;
  readonly documents: Documents;
  readonly series: MetricStore;
  readonly scaled: ScaledHosting;
  readonly topics: () => Promise<Topics>;
  readonly accountId: string;
  /** Returns the endpoint or job whose code has this key; null for a key of the owner. */
  readonly writerOf: (accessKeyId: string) => string | null;
  /** Returns whether a listing shows an object to the caller. */
  readonly lists: InstancePermissions["isObjectListed"];
  readonly listsGroup: InstancePermissions["isGroupListed"];
  /** Maximum bytes that the code of one endpoint or job may store as objects. */
  readonly writerBytesMax: number;
  readonly allowedOrigins: ReadonlySet<string>;
  /** Aborts when the platform stops. */
  readonly stopping: AbortSignal;
  readonly clock: Clock;
  /** Aborts when streams must end because the grace period of a shutdown is over. */
  readonly streamAbort: AbortSignal;
  readonly logger: Logger;
}

/** Opens all AWS services for the gateway, and STS's sessions with their temporary credentials. */
export async function platformServices(
  opening: AsyncDisposableStack,
  dependencies: ServicesDependencies,
): Promise<{ readonly services: readonly ServiceRow[]; readonly sessions: StsSessions }> {
  const { hosting, store, logs, documents, series, scaled, topics, accountId, clock, logger } = dependencies;
  const identities = openIdentityStore(documents, logger);
  const iam = { store: identities, clock, randomBytes };
  await ensureRole(iam, accountId, executionRoleName);
  const sessions = new StsSessions({ clock, randomBytes, sessionsMax });
  const executionRole = { roleName: executionRoleName, sessionName: "galatea" };
  const kept = store.kept?.bind(store);
  const services = awsServices({
    hosting,
    ...scaled,
    newId: randomUUID,
    dashboards: openDashboardStore(documents, logger),
    requestBytesMax,
    allowedOrigins: dependencies.allowedOrigins,
    store,
    s3Domain: null,
    lists: dependencies.lists,
    listsGroup: dependencies.listsGroup,
    ...(kept === undefined
      ? {}
      : {
          writers: new WriterQuotas({
            store: { kept },
            writerOf: dependencies.writerOf,
            bytesMax: dependencies.writerBytesMax,
            clock,
          }),
        }),
    series,
    logs,
    metricFilters: opening.use(
      await GroupFilters.open({ store: openMetricFilterStore(documents, logger), logs, series, logger }),
    ),
    queries: opening.use(lazyLogQueries({ store: logs, clock, logger, newId: randomUUID })),
    iam,
    identities,
    topics,
    sessions,
    executionRole,
    stopping: dependencies.stopping,
    streamAbort: dependencies.streamAbort,
    clock,
  });
  return { services, sessions };
}
