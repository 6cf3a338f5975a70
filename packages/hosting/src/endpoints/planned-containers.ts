import {
  instanceType,
  variantBudget,
  type ContainerDefinition,
  type InstanceBudget,
  type VariantPlan,
} from "../definitions/index.ts";

/** The part of an instance's memory that its models may take; the rest is the containers' own. */
const modelMemoryShare = 0.9;
const volumeGiBDefault = 30;
const gibi = 2 ** 30;

/** What a container takes without a model: our server and the interpreter that its workers are forked from. */
export const containerOwnBytes = 128 * 2 ** 20;

/** A container of each instance of a variant. */
export interface NamedContainer {
  readonly definition: ContainerDefinition;
  /** As errors and metrics call it: its ContainerHostname, else by its position; "primary" where it is the only one. */
  readonly name: string;
  readonly isOnly: boolean;
}

/** As above, with its part of the instance. */
export interface PlannedContainer extends NamedContainer {
  /** Memory for its models. */
  readonly modelMemoryBytes: number;
  /**
   * Memory for its models that no other container of the node gets: what its variables say, or what its one model is expected to take, whichever
   * is more; zero for many models whose variables say nothing.
   */
  readonly guaranteedBytes: number;
  /** Disk for the unpacked models of a multi-model container. */
  readonly modelDiskBytes: number;
}

export function namedContainers({ model }: Pick<VariantPlan, "model">): readonly NamedContainer[] {
  const { containers, executionMode } = model;
  // Named alone in Direct mode, it is asked for by that name.
  const isOnly = containers.length === 1 && executionMode === "Serial";
  return containers.map((definition, index) => ({
    definition,
    name: isOnly ? "primary" : (definition.ContainerHostname ?? `container-${index + 1}`),
    isOnly,
  }));
}

/** What the containers of an instance of a budget are called and get. A model's variables may lower its shares, never raise them above its part. */
export function plannedContainers(
  { variant, model, expectedBytes = [] }: VariantPlan,
  budget: InstanceBudget,
): readonly PlannedContainer[] {
  const { containers } = model;
  const memory = sharesOf(
    Math.floor(budget.memoryBytes * modelMemoryShare),
    containers.map((container) => wanted(container, "GALATEA_MODEL_MEMORY_BYTES")),
  );
  const disk = sharesOf(
    Math.min((variant.VolumeSizeInGB ?? volumeGiBDefault) * gibi, budget.diskBytes ?? Infinity),
    // Single models have no quota of their own on the disk.
    containers.map((container) =>
      container.Mode === "MultiModel" ? wanted(container, "GALATEA_MODEL_DISK_BYTES") : 0,
    ),
  );
  return namedContainers({ model }).map((named, index) => ({
    ...named,
    guaranteedBytes: Math.max(
      wanted(named.definition, "GALATEA_MODEL_MEMORY_BYTES") < Infinity ? (memory[index] ?? 0) : 0,
      expectedBytes[index] ?? 0,
    ),
    modelMemoryBytes: memory[index] ?? 0,
    modelDiskBytes: disk[index] ?? 0,
  }));
}

/**
 * Returns the guaranteed memory of an instance's models: what their variables say, or what a single model is expected to take. The sum of all
 * guarantees never exceeds the nodes. The size of an instance type guarantees nothing: models may grow to it where the node has free memory.
 */
export function guaranteedModelBytes(plan: VariantPlan): number {
  const unbounded = { vcpuCount: Infinity, memoryBytes: Number.MAX_SAFE_INTEGER };
  const budget = variantBudget(plan.variant, (type) => instanceType(type) ?? unbounded);
  // A serverless variant says how much its instance is to have.
  if (plan.variant.ServerlessConfig !== undefined) return budget.memoryBytes;
  return plannedContainers(plan, budget).reduce((sum, { guaranteedBytes }) => sum + guaranteedBytes, 0);
}

/** Infinity where the definition says nothing, or nothing that makes sense. */
function wanted({ Environment: environment }: ContainerDefinition, name: string): number {
  const bytes = Number(environment?.[name] ?? Number.NaN);
  return Number.isSafeInteger(bytes) && bytes > 0 ? bytes : Infinity;
}

/** Equal shares of a whole; what one does not want of its share goes to the others. */
export function sharesOf(whole: number, wants: readonly number[]): readonly number[] {
  const shares = wants.map(() => 0);
  const modestFirst = wants.map((_, index) => index).toSorted((a, b) => (wants[a] ?? 0) - (wants[b] ?? 0));
  let left = whole;
  for (const [place, index] of modestFirst.entries()) {
    const share = Math.min(wants[index] ?? 0, Math.floor(left / (modestFirst.length - place)));
    shares[index] = share;
    left -= share;
  }
  return shares;
}
