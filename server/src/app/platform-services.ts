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
  type StsService,
} from "../aws/index.ts";
import { systemClock as clock, type Logger } from "../base/index.ts";
import type { Hosting, LogStreams } from "../hosting/index.ts";
import type { MinuteSeries } from "../metrics/index.ts";
import type { Records } from "../records/index.ts";
import { recordedIdentities } from "./identities.ts";

/** The service's own limit for a request's body. */
export const requestBytesMax = 6 * 2 ** 20;
const sessionsMax = 10_000;
/** The role that the `sagemaker` SDK's get_execution_role() finds. */
export const executionRoleName = "AmazonSageMaker-DefaultRole";

export interface ServicesParts {
  readonly hosting: Hosting;
  readonly logs: LogStreams;
  readonly records: Records;
  readonly series: MinuteSeries;
  readonly accountId: string;
  readonly logger: Logger;
}

/** Every service beside S3, as the gateway takes them. */
export async function platformServices(
  parts: ServicesParts,
): Promise<{ readonly services: Omit<GatewayServices, "s3">; readonly sts: StsService }> {
  const identities = recordedIdentities(parts.records, parts.logger);
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
  const services = {
    operations: {
      sagemaker: createSageMakerOperations(parts.hosting),
      cloudwatch: createCloudWatchService({ series: parts.series, clock }),
      logs: createLogsService({ store: parts.logs, clock }),
      sts: sts.operations,
      iam: createIamService(iam),
    },
    runtime: createRuntimeService({ hosting: parts.hosting, requestBytesMax, clock }),
  };
  return { services, sts };
}
