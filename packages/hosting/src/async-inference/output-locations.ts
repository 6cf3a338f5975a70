import { AwsError } from "@galatea/base";
import { parseS3Uri, type AsyncInferenceConfig } from "../definitions/index.ts";
import type { S3ObjectLocation } from "./async-invocation.ts";

/** The names of a request's output objects. */
export interface OutputNames {
  /** Unique identifier of the request. */
  readonly id: string;
  readonly extension: string | null;
  readonly fileName: string | null;
}

export interface OutputLocations {
  readonly output: S3ObjectLocation | null;
  readonly failure: S3ObjectLocation | null;
}

/** Returns the S3 locations of a request's response and of its failure object. Only one of the two is written. */
export function chooseOutputLocations(
  { OutputConfig: config }: AsyncInferenceConfig,
  names: OutputNames,
): OutputLocations {
  const { id, extension, fileName } = names;
  const failed = fileName === null ? id : fileName.replace(/\.[^.]*$/, "");
  return {
    output: locationBelow(config.S3OutputPath, extension, fileName ?? `${id}.out`),
    failure: locationBelow(config.S3FailurePath, extension, `${failed}-error.out`),
  };
}

export const s3Url = ({ bucket, key }: S3ObjectLocation): string => `s3://${bucket}/${key}`;

function locationBelow(path: string | undefined, extension: string | null, name: string): S3ObjectLocation | null {
  if (path === undefined || path === "") return null;
  const parsed = parseS3Uri(path);
  if (parsed === null)
    throw new AwsError(
      "ValidationError",
      `The output path ${path} of the endpoint configuration is not an S3 URL. Use the form s3://bucket/prefix.`,
    );
  const key = [parsed.key, extension ?? "", name]
    .map((segment) => segment.replace(/^\/+|\/+$/g, ""))
    .filter((segment) => segment !== "");
  return { bucket: parsed.bucket, key: key.join("/") };
}
