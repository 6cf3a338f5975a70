import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Logger } from "@galatea/base";
import type { BucketStore } from "@galatea/hosting/objects";
import type { DataDirectories } from "../../data-directory/index.ts";

export interface ObjectServiceAddress {
  readonly endpoint: string;
  readonly region: string;
}

/** Loads the client of S3, which a platform over its own directory does not. */
export async function openS3Objects(
  address: ObjectServiceAddress,
  { directories, logger }: { readonly directories: DataDirectories; readonly logger: Logger },
): Promise<BucketStore> {
  const { openS3Store } = await import("@galatea/hosting/objects/s3");
  // A separate folder: objects of a platform that was over the directory before stay.
  const folder = join(directories.objects, "sending");
  return await openS3Store({ address, folder, processorCount: availableParallelism(), logger });
}
