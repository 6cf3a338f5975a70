import type { Alarms } from "@galatea/hosting/alarms";
import { AwsError, type Clock } from "@galatea/base";
import type { ScalableResources, ScalableTarget, Scaling, ScalingRecord } from "@galatea/hosting/scaling";
import type { PageQuery } from "../../wire/index.ts";
import { targetNotFound, resolveScaledTarget, type ScalableTargetName } from "./resources.ts";

export interface AutoscalingDependencies {
  readonly scaling: Scaling;
  readonly scalable: ScalableResources;
  readonly alarms: Alarms;
  readonly newId: () => string;
  readonly clock: Clock;
}

const resultsMax = 50;

export function requireRegisteredTarget(scaling: Scaling, named: ScalableTargetName): ScalingRecord {
  const found = scaling.find(resolveScaledTarget(named));
  if (found === null) throw targetNotFound(named);
  return found;
}

export function isRequestedTarget(
  input: { readonly ResourceId?: string; readonly ScalableDimension?: string },
  { resourceId, dimension }: ScalableTarget,
): boolean {
  return (input.ResourceId === undefined || input.ResourceId === resourceId) && matchesDimension(input, dimension);
}

export function matchesDimension(
  { ScalableDimension }: { readonly ScalableDimension?: string },
  dimension: string,
): boolean {
  return ScalableDimension === undefined || ScalableDimension === dimension;
}

export function autoscalingPageQuery(
  operation: string,
  input: { readonly MaxResults?: number; readonly NextToken?: string },
): PageQuery {
  const { MaxResults: countMax, NextToken: token } = input;
  return { countMax, pageMax: resultsMax, token, listing: { operation, input }, refusal: invalidNextToken };
}

const invalidNextToken = (token: string) =>
  new AwsError("InvalidNextTokenException", `The next token ${token} is invalid.`);
