import type { Owner } from "../definitions/index.ts";
import { failureReason, type EndpointRecord, type EndpointState } from "./endpoint-record.ts";

/** One state of an endpoint following another: what is told of it, also when the endpoint is gone. */
export interface StateChange {
  readonly timeMs: number;
  readonly endpointName: string;
  readonly endpointArn: string;
  readonly owner: Owner;
  readonly configName: string;
  /** Null: it has just been created. */
  readonly before: EndpointState["at"] | null;
  /** `Deleted`: it is gone. */
  readonly status: EndpointState["at"] | "Deleted";
  readonly reason: string | null;
  readonly createdMs: number;
  readonly variants: readonly {
    readonly name: string;
    readonly instanceCount: number;
    readonly weight: number;
  }[];
}

/** Of a write that makes one record of an endpoint of another; null where the endpoint stays in its state. */
export function stateChangeOf(
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
