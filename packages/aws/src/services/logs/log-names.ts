import { AwsError } from "@galatea/base";
import type { CallContext, PageQuery } from "../../wire/index.ts";

const namesPerPage = 50;

export interface NamedGroup {
  readonly logGroupName?: string;
  readonly logGroupIdentifier?: string;
}

/** Returns the group name of a request that contains a name or an ARN. */
export function logGroupNameOf({ logGroupName, logGroupIdentifier }: NamedGroup): string {
  if (logGroupName !== undefined && logGroupIdentifier !== undefined) {
    throw logParameterError("LogGroupName and LogGroupIdentifier cannot be used together.");
  }
  const input = logGroupName ?? logGroupIdentifier;
  if (input === undefined) throw logParameterError("Either logGroupName or logGroupIdentifier is required.");
  return /^arn:[^:]*:logs:[^:]*:[^:]*:log-group:([^:]+)/.exec(input)?.[1] ?? input;
}

/** Returns the query for the page that a request selects. */
export function logPageQuery(
  operation: string,
  input: { readonly limit?: number; readonly nextToken?: string },
  isDescending = false,
): PageQuery {
  const { limit: countMax, nextToken: token } = input;
  const listing = { operation, input };
  return { countMax, pageMax: namesPerPage, token, isDescending, listing, refusal: invalidLogToken };
}

/** Returns the error for a token that another listing has issued. */
export const invalidLogToken = (): AwsError => logParameterError("The specified nextToken is invalid.");

export function logsArnPrefix({ region, accountId }: CallContext): string {
  return `arn:aws:logs:${region}:${accountId}:log-group:`;
}

/** Returns the error for input that the published model allows and CloudWatch Logs does not. */
export function logParameterError(message: string): AwsError {
  return new AwsError("InvalidParameterException", message);
}
