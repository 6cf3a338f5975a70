/** A platform whose objects are in an S3 service: another Galatea. */
import { DeleteBucketCommand } from "@aws-sdk/client-s3";
import { freePorts } from "../environments/index.ts";
import { bucket, credentials, Platform } from "../faults/platform.ts";
import { objectsServiceTest } from "./objects-service-checks.ts";

objectsServiceTest("Galatea", async () => {
  const platform = await Platform.open(undefined, { verified: true, port: (await freePorts(1))[0] ?? 0 });
  // Each platform of these tests first creates the bucket.
  await platform.s3.send(new DeleteBucketCommand({ Bucket: bucket }));
  return Object.assign(platform, { credentials });
});
