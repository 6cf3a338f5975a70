import { createRuntimeService, createSageMakerOperations, type GatewayServices } from "../aws/index.ts";
import { systemClock, type Logger } from "../base/index.ts";
import type { Hosting } from "../hosting/index.ts";
import type { MinuteSeries } from "../metrics/index.ts";
import type { Records } from "../records/index.ts";
import type { DataDirectories } from "./directories.ts";

/** The service's own limit for a request's body. */
const requestBytesMax = 6 * 2 ** 20;

export interface ServicesParts {
  readonly directories: DataDirectories;
  readonly records: Records;
  readonly series: MinuteSeries;
  readonly log: Logger;
}

/** The services beside S3, and what they share with hosting. */
export interface PlatformServices extends AsyncDisposable {
  readonly openLog: (group: string, stream: string) => (chunk: Uint8Array) => void;
  of(hosting: Hosting): GatewayServices;
}

export function platformServices(_parts: ServicesParts): Promise<PlatformServices> {
  return Promise.resolve({
    openLog: () => () => {},
    of: (hosting) => ({
      operations: { sagemaker: createSageMakerOperations(hosting) },
      runtime: createRuntimeService({ hosting, requestBytesMax, clock: systemClock }),
    }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}
