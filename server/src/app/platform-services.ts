import { randomBytes } from "node:crypto";
import {
  createCloudWatchService,
  createIamService,
  createLogsService,
  createRuntimeService,
  createSageMakerOperations,
  createStsService,
  ensureRole,
  type GatewayServices,
} from "../aws/index.ts";
import { systemClock as clock } from "../base/index.ts";
import type { Hosting, LogStreams } from "../hosting/index.ts";
import type { MinuteSeries } from "../metrics/index.ts";
import type { Records } from "../records/index.ts";
import { recordedIdentities } from "./identities.ts";

/** The service's own limit for a request's body. */
const requestBytesMax = 6 * 2 ** 20;
const sessionsMax = 10_000;
/** The role that the `sagemaker` SDK's get_execution_role() finds. */
export const executionRoleName = "AmazonSageMaker-DefaultRole";

export interface ServicesParts {
  readonly hosting: Hosting;
  readonly logs: LogStreams;
  readonly records: Records;
  readonly series: MinuteSeries;
  readonly accountId: string;
}

/** Every service beside S3, as the gateway takes them. */
export async function platformServices(parts: ServicesParts): Promise<Omit<GatewayServices, "s3">> {
  const identities = recordedIdentities(parts.records);
  const iam = { store: identities, clock, randomBytes };
  await ensureRole(iam, parts.accountId, executionRoleName);
  const sts = createStsService({
    clock,
    randomBytes,
    identities,
    roleName: executionRoleName,
    sessionName: "galatea",
    sessionsMax,
  });
  return {
    operations: {
      sagemaker: createSageMakerOperations(parts.hosting),
      cloudwatch: createCloudWatchService({ series: parts.series, clock }),
      logs: createLogsService({ store: parts.logs, clock }),
      sts: sts.operations,
      iam: createIamService(iam),
    },
    runtime: createRuntimeService({ hosting: parts.hosting, requestBytesMax, clock }),
  };
}
