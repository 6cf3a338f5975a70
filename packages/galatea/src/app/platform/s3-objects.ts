import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Logger } from "@galatea/base";
import type { BucketStore } from "@galatea/hosting/objects";
import type { DataDirectories } from "../../data-directory/index.ts";

export interface ObjectServiceAddress {
  readonly endpoint: string;
  readonly region: string;
}

/**
 * Opens the object store in S3. Loads the S3 client, which a platform with objects in its data directory does not need.
 */
export async function openS3Objects(
  address: ObjectServiceAddress,
  { directories, logger }: { readonly directories: DataDirectories; readonly logger: Logger },
): Promise<BucketStore> {
  const { openS3Store } = await import("@galatea/hosting/objects/s3");
  // Uses a separate folder, so that objects that the platform stored in the data directory before stay there.
  const folder = join(directories.objects, "sending");
  return await openS3Store({ address, folder, processorCount: availableParallelism(), logger });
}
