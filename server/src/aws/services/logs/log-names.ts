import { AwsError } from "../../../base/index.ts";
import type { CallContext } from "../../wire/index.ts";

const namesPerPage = 50;

export interface NamedGroup {
  readonly logGroupName?: string;
  readonly logGroupIdentifier?: string;
}

/** The name, from itself or from an ARN. */
export function groupOf({ logGroupName, logGroupIdentifier }: NamedGroup): string {
  if (logGroupName !== undefined && logGroupIdentifier !== undefined) {
    throw invalid("LogGroupName and LogGroupIdentifier cannot be used together.");
  }
  const given = logGroupName ?? logGroupIdentifier;
  if (given === undefined) throw invalid("Either logGroupName or logGroupIdentifier is required.");
  return /^arn:[^:]*:logs:[^:]*:[^:]*:log-group:([^:]+)/.exec(given)?.[1] ?? given;
}

interface PageRequest {
  readonly limit?: number;
  readonly nextToken?: string;
  readonly isDescending?: boolean;
}

/** A page's token is the key of its last item: stable while others come and go. */
export function pageBy<Item>(items: readonly Item[], keyOf: (item: Item) => string, request: PageRequest) {
  const { limit = namesPerPage, nextToken, isDescending = false } = request;
  const rest =
    nextToken === undefined
      ? items
      : items.filter((item) => (isDescending ? keyOf(item) < nextToken : keyOf(item) > nextToken));
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  return { items: page, nextToken: last !== undefined && rest.length > page.length ? keyOf(last) : undefined };
}

export function arnPrefix({ region, accountId }: CallContext): string {
  return `arn:aws:logs:${region}:${accountId}:log-group:`;
}

function invalid(message: string): AwsError {
  return new AwsError("InvalidParameterException", message);
}
