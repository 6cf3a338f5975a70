import { assert, unreachable } from "../../base/index.ts";
import type { Owner, VariantPlan } from "../definitions/index.ts";

/** The service's endpoint statuses, each with what only it has. Statuses we never enter are not among them. */
export type EndpointState =
  | { readonly at: "Creating" }
  | { readonly at: "InService"; readonly lastFailure: string | null }
  | { readonly at: "Updating"; readonly next: { readonly configName: string; readonly plans: readonly VariantPlan[] } }
  | { readonly at: "RollingBack"; readonly reason: string }
  | { readonly at: "Deleting" }
  | { readonly at: "Failed"; readonly reason: string };

export type EndpointEvent =
  | { readonly kind: "ready" }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "update"; readonly configName: string; readonly plans: readonly VariantPlan[] }
  | { readonly kind: "rolled-back" }
  | { readonly kind: "delete" };

/** FailureReason's length in the service's model. */
const reasonLengthMax = 1024;

/** Every move an endpoint makes. An event that a state does not know is a bug of the caller, which checks what users ask. */
export function moveEndpoint(state: EndpointState, event: EndpointEvent): EndpointState {
  switch (event.kind) {
    case "delete":
      return { at: "Deleting" };
    case "ready":
      assert(state.at === "Creating" || state.at === "Updating", `ready while ${state.at}`);
      return { at: "InService", lastFailure: null };
    case "failed": {
      const reason = event.reason.slice(0, reasonLengthMax);
      if (state.at === "Updating") return { at: "RollingBack", reason };
      assert(state.at === "Creating", `failed while ${state.at}`);
      return { at: "Failed", reason };
    }
    case "update":
      assert(state.at === "InService", `update while ${state.at}`);
      return { at: "Updating", next: { configName: event.configName, plans: event.plans } };
    case "rolled-back":
      assert(state.at === "RollingBack", `rolled back while ${state.at}`);
      return { at: "InService", lastFailure: state.reason };
    default:
      return unreachable(event);
  }
}

/** States that end by themselves. */
export function isTransient(state: Pick<EndpointState, "at">): boolean {
  return state.at !== "InService" && state.at !== "Failed";
}

export function failureReason(state: EndpointState): string | null {
  if (state.at === "Failed" || state.at === "RollingBack") return state.reason;
  return state.at === "InService" ? state.lastFailure : null;
}

export interface EndpointRecord {
  readonly name: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly modifiedMs: number;
  readonly owner: Owner;
  readonly state: EndpointState;
  readonly configName: string;
  readonly plans: readonly VariantPlan[];
}

/** What runs, or is to run, for an endpoint or a transform job. Each container is a server with processes of its own. */
export interface Footprint {
  readonly instanceCount: number;
  /** Of all instances together. */
  readonly containerCount: number;
}

export const noFootprint: Footprint = { instanceCount: 0, containerCount: 0 };

/** Of what an endpoint has or is to have; while it is updated of both sides. */
export function plannedFootprint({ plans, state }: EndpointRecord): Footprint {
  return footprintOf(state.at === "Updating" ? [...plans, ...state.next.plans] : plans);
}

export function footprintOf(plans: readonly VariantPlan[]): Footprint {
  let [instanceCount, containerCount] = [0, 0];
  for (const { variant, model } of plans) {
    instanceCount += variant.InitialInstanceCount;
    containerCount += variant.InitialInstanceCount * model.containers.length;
  }
  return { instanceCount, containerCount };
}
