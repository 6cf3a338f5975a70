import type { ContainerDefinition, ModelRecord, VariantPlan } from "../definitions/index.ts";
import { unreachable } from "@galatea/base";
import {
  beginChange,
  newGeneration,
  restoringSteps,
  settledGeneration,
  updateSteps,
  type EndpointRecord,
  type EndpointState,
} from "../endpoints/index.ts";

/** A model as it was written while it had one container. */
interface ModelOfOneContainer extends Omit<ModelRecord, "containers" | "executionMode"> {
  readonly container: ContainerDefinition;
}

/** A model as it was written while all models were run in one way. */
type ModelWithoutMode = Omit<ModelRecord, "executionMode">;

type StoredModel = ModelRecord | ModelWithoutMode | ModelOfOneContainer;

interface StoredPlan extends Omit<VariantPlan, "model"> {
  readonly model: StoredModel;
}

/** An endpoint as it was written while it had one configuration, or went from one to another at once. */
interface EndpointOfPlans extends Omit<EndpointRecord, "generations" | "deploymentConfig" | "state"> {
  readonly configName: string;
  readonly plans: readonly StoredPlan[];
  readonly state:
    | Exclude<EndpointState, { readonly at: "Updating" | "RollingBack" }>
    | { readonly at: "Updating"; readonly next: StoredDeployment }
    | { readonly at: "RollingBack"; readonly reason: string };
}

interface StoredDeployment {
  readonly configName: string;
  readonly plans: readonly StoredPlan[];
}

export function modelRecord(stored: unknown): ModelRecord {
  return currentModel(stored as StoredModel);
}

export function endpointRecord(stored: unknown): EndpointRecord {
  const read = stored as EndpointRecord | EndpointOfPlans;
  if ("generations" in read) return read;
  const { plans, configName, state, ...rest } = read;
  const first = newGeneration(1, { configName, plans: plans.map(currentPlan) });
  const serving = settledGeneration(first);
  const shared = { ...rest, deploymentConfig: null };
  switch (state.at) {
    case "Updating": {
      const { next } = state;
      const second = newGeneration(2, { configName: next.configName, plans: next.plans.map(currentPlan) });
      const change = beginChange(rest.modifiedMs, updateSteps(serving, second, null));
      return { ...shared, generations: [serving, second], state: { at: "Updating", change } };
    }
    case "RollingBack": {
      const change = beginChange(rest.modifiedMs, restoringSteps([serving], null));
      return { ...shared, generations: [serving], state: { ...state, change } };
    }
    case "InService":
      return { ...shared, generations: [serving], state };
    case "Creating":
    case "Deleting":
    case "Failed":
    case "OutOfService":
    case "UpdateRollbackFailed":
      return { ...shared, generations: [first], state };
    default:
      return unreachable(state);
  }
}

function currentModel(stored: StoredModel): ModelRecord {
  if ("executionMode" in stored) return stored;
  if ("containers" in stored) return { ...stored, executionMode: "Serial" };
  const { container, ...rest } = stored;
  if (container === undefined) throw new Error("a model without a container");
  return { ...rest, containers: [container], executionMode: "Serial" };
}

const currentPlan = ({ model, ...rest }: StoredPlan): VariantPlan => ({ ...rest, model: currentModel(model) });
