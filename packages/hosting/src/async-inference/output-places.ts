import { AwsError } from "@galatea/base";
import { parseS3Uri, type AsyncInferenceConfig } from "../definitions/index.ts";
import type { ObjectPlace } from "./async-invocation.ts";

/** How a request names what comes of it. */
export interface OutputNames {
  /** Of this request alone. */
  readonly id: string;
  readonly extension: string | null;
  readonly fileName: string | null;
}

export interface OutputPlaces {
  readonly output: ObjectPlace | null;
  readonly failure: ObjectPlace | null;
}

/** Where the answer of a request goes, or what is said of its failure: one of the two is written. */
export function outputPlaces({ OutputConfig: config }: AsyncInferenceConfig, names: OutputNames): OutputPlaces {
  const { id, extension, fileName } = names;
  const failed = fileName === null ? id : fileName.replace(/\.[^.]*$/, "");
  return {
    output: placeBelow(config.S3OutputPath, extension, fileName ?? `${id}.out`),
    failure: placeBelow(config.S3FailurePath, extension, `${failed}-error.out`),
  };
}

export const urlOf = ({ bucket, key }: ObjectPlace): string => `s3://${bucket}/${key}`;

function placeBelow(path: string | undefined, extension: string | null, name: string): ObjectPlace | null {
  if (path === undefined || path === "") return null;
  const parsed = parseS3Uri(path);
  if (parsed === null) throw new AwsError("ValidationError", `${path} is no location in Amazon S3.`);
  const key = [parsed.key, extension ?? "", name]
    .map((part) => part.replace(/^\/+|\/+$/g, ""))
    .filter((part) => part !== "");
  return { bucket: parsed.bucket, key: key.join("/") };
}
