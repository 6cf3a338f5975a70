import { AwsError } from "@galatea/base";
import { parseS3Uri, type AsyncInferenceConfig } from "../definitions/index.ts";
import type { S3ObjectLocation } from "./async-invocation.ts";

/** The names of a request's output objects. */
export interface OutputNames {
  /** Unique for each request. */
  readonly id: string;
  readonly extension: string | null;
  readonly fileName: string | null;
}

export interface OutputLocations {
  readonly output: S3ObjectLocation | null;
  readonly failure: S3ObjectLocation | null;
}

/** Returns the locations of a request's response and of its failure object, of which one is written. */
export function outputLocationsOf({ OutputConfig: config }: AsyncInferenceConfig, names: OutputNames): OutputLocations {
  const { id, extension, fileName } = names;
  const failed = fileName === null ? id : fileName.replace(/\.[^.]*$/, "");
  return {
    output: locationBelow(config.S3OutputPath, extension, fileName ?? `${id}.out`),
    failure: locationBelow(config.S3FailurePath, extension, `${failed}-error.out`),
  };
}

export const urlOf = ({ bucket, key }: S3ObjectLocation): string => `s3://${bucket}/${key}`;

function locationBelow(path: string | undefined, extension: string | null, name: string): S3ObjectLocation | null {
  if (path === undefined || path === "") return null;
  const parsed = parseS3Uri(path);
  if (parsed === null) throw new AwsError("ValidationError", `${path} is not a location in Amazon S3.`);
  const key = [parsed.key, extension ?? "", name]
    .map((part) => part.replace(/^\/+|\/+$/g, ""))
    .filter((part) => part !== "");
  return { bucket: parsed.bucket, key: key.join("/") };
}
