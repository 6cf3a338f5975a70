import type { Owner } from "../definitions/index.ts";
import { failureReason, type EndpointRecord, type EndpointState } from "./endpoint-record.ts";

/** A change of an endpoint's state. It contains all data for log lines and notifications, even after the endpoint's deletion. */
export interface StateChange {
  readonly timeMs: number;
  readonly endpointName: string;
  readonly endpointArn: string;
  readonly owner: Owner;
  readonly configName: string;
  /** The previous state; null if the endpoint was just created. */
  readonly before: EndpointState["at"] | null;
  /** The new state; `Deleted` if the endpoint's record was deleted. */
  readonly status: EndpointState["at"] | "Deleted";
  readonly reason: string | null;
  readonly createdMs: number;
  readonly variants: readonly {
    readonly name: string;
    readonly instanceCount: number;
    readonly weight: number;
  }[];
}

/** Returns the change between two records of an endpoint; null if the state is the same. */
export function detectStateChange(
  before: EndpointRecord | null,
  after: EndpointRecord | null,
  timeMs: number,
): StateChange | null {
  const record = after ?? before;
  if (record === null || before?.state.at === after?.state.at) return null;
  const [own] = record.generations;
  return {
    timeMs,
    endpointName: record.name,
    endpointArn: record.arn,
    owner: record.owner,
    configName: own.configName,
    before: before?.state.at ?? null,
    status: after?.state.at ?? "Deleted",
    reason: after === null ? null : failureReason(after.state),
    createdMs: record.createdMs,
    variants: own.variants.map(({ plan, observed }) => ({
      name: plan.variant.VariantName,
      instanceCount: observed.instanceCount,
      weight: observed.weight,
    })),
  };
}
