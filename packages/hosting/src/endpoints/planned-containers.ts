import {
  instanceTypeSize,
  variantBudget,
  type ContainerDefinition,
  type InstanceBudget,
  type VariantPlan,
} from "../definitions/index.ts";

/** Share of an instance's memory that its models may use. The rest is for the container processes. */
const modelMemoryShare = 0.9;
const volumeGiBDefault = 30;
const gibi = 2 ** 30;

/** Bytes of memory of a container without models: the server, and the Python interpreter from which its workers are forked. */
export const containerBaseBytes = 128 * 2 ** 20;

/** A container of each instance of a variant. */
export interface NamedContainer {
  readonly definition: ContainerDefinition;
  /** Name in errors and metrics: "primary" for a single container, else the ContainerHostname or a name made from the position. */
  readonly name: string;
  readonly isOnly: boolean;
}

/** A container with its share of the instance's resources. */
export interface PlannedContainer extends NamedContainer {
  /** Maximum bytes of memory for the container's models. */
  readonly modelMemoryBytes: number;
  /**
   * Bytes of node memory that are guaranteed to the container's models: the value of GALATEA_MODEL_MEMORY_BYTES or the
   * expected size of its single model, whichever is larger. Zero for a multi-model container without that variable.
   */
  readonly guaranteedBytes: number;
  /** Maximum bytes of disk for the unpacked models of a multi-model container. */
  readonly modelDiskBytes: number;
}

export function namedContainers({ model }: Pick<VariantPlan, "model">): readonly NamedContainer[] {
  const { containers, executionMode } = model;
  // With Mode Direct, even a single container is addressed by its name.
  const isOnly = containers.length === 1 && executionMode === "Serial";
  return containers.map((definition, index) => ({
    definition,
    name: isOnly ? "primary" : (definition.ContainerHostname ?? `container-${index + 1}`),
    isOnly,
  }));
}

/**
 * Returns the containers of an instance with their shares of the instance's resources. Environment variables of a model
 * can lower its share but not raise it.
 */
export function planContainers(
  { variant, model, expectedBytes = [] }: VariantPlan,
  budget: InstanceBudget,
): readonly PlannedContainer[] {
  const { containers } = model;
  const memory = divideFairly(
    Math.floor(budget.memoryBytes * modelMemoryShare),
    containers.map((container) => variableBytes(container, "GALATEA_MODEL_MEMORY_BYTES")),
  );
  const disk = divideFairly(
    Math.min((variant.VolumeSizeInGB ?? volumeGiBDefault) * gibi, budget.diskBytes ?? Infinity),
    // Only multi-model containers have a disk quota.
    containers.map((container) =>
      container.Mode === "MultiModel" ? variableBytes(container, "GALATEA_MODEL_DISK_BYTES") : 0,
    ),
  );
  return namedContainers({ model }).map((named, index) => ({
    ...named,
    guaranteedBytes: Math.max(
      variableBytes(named.definition, "GALATEA_MODEL_MEMORY_BYTES") < Infinity ? (memory[index] ?? 0) : 0,
      expectedBytes[index] ?? 0,
    ),
    modelMemoryBytes: memory[index] ?? 0,
    modelDiskBytes: disk[index] ?? 0,
  }));
}

/**
 * Returns the guaranteed bytes of memory of an instance's models: the value of GALATEA_MODEL_MEMORY_BYTES, or the expected
 * size of a single model. The sum of all guarantees never exceeds the memory of the nodes. The memory of an instance type
 * is not guaranteed: models may use it only while the node has free memory.
 */
export function guaranteedModelBytes(plan: VariantPlan): number {
  const unbounded = { vcpuCount: Infinity, memoryBytes: Number.MAX_SAFE_INTEGER };
  const budget = variantBudget(plan.variant, (type) => instanceTypeSize(type) ?? unbounded);
  // The memory of a serverless variant is guaranteed as a whole.
  if (plan.variant.ServerlessConfig !== undefined) return budget.memoryBytes;
  return planContainers(plan, budget).reduce((sum, { guaranteedBytes }) => sum + guaranteedBytes, 0);
}

/** Returns the number of bytes in an environment variable; Infinity if it is missing or invalid. */
function variableBytes({ Environment: environment }: ContainerDefinition, name: string): number {
  const bytes = Number(environment?.[name] ?? Number.NaN);
  return Number.isSafeInteger(bytes) && bytes > 0 ? bytes : Infinity;
}

/**
 * Divides a total into equal shares. No recipient gets more than it wants; what remains is divided among the others.
 */
export function divideFairly(total: number, wants: readonly number[]): readonly number[] {
  const shares = wants.map(() => 0);
  const modestFirst = wants.map((_, index) => index).toSorted((a, b) => (wants[a] ?? 0) - (wants[b] ?? 0));
  let left = total;
  for (const [position, index] of modestFirst.entries()) {
    const share = Math.min(wants[index] ?? 0, Math.floor(left / (modestFirst.length - position)));
    shares[index] = share;
    left -= share;
  }
  return shares;
}
