import type { ContainerDefinition, ModelRecord, VariantPlan } from "../definitions/index.ts";
import type { EndpointRecord, EndpointState } from "../endpoints/index.ts";

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

type StoredState =
  | Exclude<EndpointState, { readonly at: "Updating" }>
  | { readonly at: "Updating"; readonly next: { readonly configName: string; readonly plans: readonly StoredPlan[] } };

interface StoredEndpoint extends Omit<EndpointRecord, "plans" | "state"> {
  readonly plans: readonly StoredPlan[];
  readonly state: StoredState;
}

export function modelRecord(stored: unknown): ModelRecord {
  return currentModel(stored as StoredModel);
}

export function endpointRecord(stored: unknown): EndpointRecord {
  const { plans, state, ...rest } = stored as StoredEndpoint;
  return { ...rest, plans: plans.map(currentPlan), state: currentState(state) };
}

function currentModel(stored: StoredModel): ModelRecord {
  if ("executionMode" in stored) return stored;
  if ("containers" in stored) return { ...stored, executionMode: "Serial" };
  const { container, ...rest } = stored;
  if (container === undefined) throw new Error("a model without a container");
  return { ...rest, containers: [container], executionMode: "Serial" };
}

const currentPlan = ({ model, ...rest }: StoredPlan): VariantPlan => ({ ...rest, model: currentModel(model) });

function currentState(state: StoredState): EndpointState {
  if (state.at !== "Updating") return state;
  return { at: "Updating", next: { ...state.next, plans: state.next.plans.map(currentPlan) } };
}
