import { AwsError } from "@galatea/base";

export const isBucketName = (name: string) =>
  /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name) && !name.includes("..") && !/^\d+\.\d+\.\d+\.\d+$/.test(name);

/** Throws InvalidBucketName if S3 does not allow the name. */
export function checkBucketName(name: string): void {
  if (!isBucketName(name)) throw new AwsError("InvalidBucketName", "The specified bucket is not valid.");
}
