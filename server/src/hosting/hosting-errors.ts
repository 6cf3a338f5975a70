import { AwsError } from "../base/index.ts";

/** Sentences that SDKs match on by their parts: "Could not find", "Cannot create already existing". */
export type HostingNoun = "model" | "endpoint configuration" | "endpoint";

export function notFound(noun: HostingNoun, arn: string): AwsError {
  return new AwsError("ValidationException", `Could not find ${noun} "${arn}".`);
}

export function alreadyExists(noun: HostingNoun, arn: string): AwsError {
  return new AwsError("ValidationException", `Cannot create already existing ${noun} "${arn}".`);
}

export function invalid(text: string): AwsError {
  return new AwsError("ValidationException", text);
}

export function limitExceeded(text: string): AwsError {
  return new AwsError("ResourceLimitExceeded", text);
}
