import {
  instanceTypeSize,
  variantBudget,
  type ContainerDefinition,
  type InstanceBudget,
  type VariantPlan,
} from "../definitions/index.ts";

/** The share of an instance's memory for its models; the rest is for the containers themselves. */
const modelMemoryShare = 0.9;
const volumeGiBDefault = 30;
const gibi = 2 ** 30;

/** Bytes that a container uses without a model: our server, and the interpreter that its workers are forked from. */
export const containerOwnBytes = 128 * 2 ** 20;

/** A container of each instance of a variant. */
export interface NamedContainer {
  readonly definition: ContainerDefinition;
  /** The name in errors and metrics: its ContainerHostname, else its position; "primary" for a single container. */
  readonly name: string;
  readonly isOnly: boolean;
}

/** A container with its share of the instance. */
export interface PlannedContainer extends NamedContainer {
  /** Bytes of memory for its models. */
  readonly modelMemoryBytes: number;
  /**
   * Bytes of memory for its models that no other container of the node gets: the value of its variables or the expected
   * size of its single model, whichever is larger; zero for a multi-model container without such variables.
   */
  readonly guaranteedBytes: number;
  /** Bytes of disk for the unpacked models of a multi-model container. */
  readonly modelDiskBytes: number;
}

export function namedContainers({ model }: Pick<VariantPlan, "model">): readonly NamedContainer[] {
  const { containers, executionMode } = model;
  // A single container in Direct mode is still addressed by its name.
  const isOnly = containers.length === 1 && executionMode === "Serial";
  return containers.map((definition, index) => ({
    definition,
    name: isOnly ? "primary" : (definition.ContainerHostname ?? `container-${index + 1}`),
    isOnly,
  }));
}

/**
 * Returns the containers of an instance with their shares of its budget. A model's variables can lower its shares, but
 * not raise them.
 */
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
    // Single models have no disk quota of their own.
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
 * Returns the guaranteed memory of an instance's models: the value of their variables, or the expected size of a single
 * model. The sum of all guarantees never exceeds the nodes. The size of an instance type guarantees nothing: models may
 * use it while the node has free memory.
 */
export function guaranteedModelBytes(plan: VariantPlan): number {
  const unbounded = { vcpuCount: Infinity, memoryBytes: Number.MAX_SAFE_INTEGER };
  const budget = variantBudget(plan.variant, (type) => instanceTypeSize(type) ?? unbounded);
  // A serverless variant sets the memory of its instance.
  if (plan.variant.ServerlessConfig !== undefined) return budget.memoryBytes;
  return plannedContainers(plan, budget).reduce((sum, { guaranteedBytes }) => sum + guaranteedBytes, 0);
}

/** Returns a variable's number of bytes; Infinity where it is missing or invalid. */
function wanted({ Environment: environment }: ContainerDefinition, name: string): number {
  const bytes = Number(environment?.[name] ?? Number.NaN);
  return Number.isSafeInteger(bytes) && bytes > 0 ? bytes : Infinity;
}

/** Divides a total into equal shares; the unneeded rest of a share goes to the others. */
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
