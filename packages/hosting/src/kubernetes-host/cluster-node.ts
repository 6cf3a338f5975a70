import { instanceTypeSize, type InstanceBudget } from "../definitions/index.ts";
import { parseNodeId, type NodeDescription } from "../nodes/index.ts";
import { parseQuantity } from "./quantity.ts";

/** A toleration of a pod, as Kubernetes' `tolerations` have it. */
export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
}

/**
 * The resources and node constraints of pods of one instance type, from the operator's configuration. Absent fields default to the published
 * size of the type.
 */
export interface PodTypeRow {
  /** Processors, such as `500m`. */
  readonly cpu?: string;
  /** Memory of the models and their containers, such as `4Gi`. */
  readonly memory?: string;
  /** Number of `nvidia.com/gpu`. */
  readonly gpus?: number;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Toleration[];
}

/** Rows by instance type, such as `ml.g5.xlarge`. */
export type PodTypeRows = Readonly<Record<string, PodTypeRow>>;

/** Published number of GPUs, by instance family and size. */
const gpuCounts: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  p2: { xlarge: 1, "8xlarge": 8, "16xlarge": 16 },
  p3: { "2xlarge": 1, "8xlarge": 4, "16xlarge": 8 },
  p3dn: { "24xlarge": 8 },
  p4d: { "24xlarge": 8 },
  p4de: { "24xlarge": 8 },
  p5: { "4xlarge": 1, "48xlarge": 8 },
  p5e: { "48xlarge": 8 },
  p5en: { "48xlarge": 8 },
  g4dn: { xlarge: 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 4, "16xlarge": 1 },
  g5: {
    xlarge: 1,
    "2xlarge": 1,
    "4xlarge": 1,
    "8xlarge": 1,
    "12xlarge": 4,
    "16xlarge": 1,
    "24xlarge": 4,
    "48xlarge": 8,
  },
  g6: {
    xlarge: 1,
    "2xlarge": 1,
    "4xlarge": 1,
    "8xlarge": 1,
    "12xlarge": 4,
    "16xlarge": 1,
    "24xlarge": 4,
    "48xlarge": 8,
  },
  g6e: {
    xlarge: 1,
    "2xlarge": 1,
    "4xlarge": 1,
    "8xlarge": 1,
    "12xlarge": 4,
    "16xlarge": 1,
    "24xlarge": 4,
    "48xlarge": 8,
  },
  gr6: { "4xlarge": 1, "8xlarge": 1 },
};

const publishedGpus: ReadonlyMap<string, number> = new Map(
  Object.entries(gpuCounts).flatMap(([family, sizes]) =>
    Object.entries(sizes).map(([size, count]) => [`ml.${family}.${size}`, count] as const),
  ),
);

/** Returns an error text if the size of an instance type is unknown; null if the size is published or configured in `rows`. */
export function unknownTypeText(type: string, { [type]: row }: PodTypeRows): string | null {
  if (instanceTypeSize(type) !== null || (row?.cpu !== undefined && row.memory !== undefined)) return null;
  return `the size of the instance type ${type} is not known: use another type, or give it a row with cpu and memory in instances.types of the chart's values`;
}

/**
 * Returns the cluster as one node of hosting. Its capacity is unlimited, because Kubernetes' scheduler places the pods and knows the free
 * resources. `diskBytes`: disk size of each instance in bytes. Throws for a row with an invalid quantity.
 */
export function clusterNode(rows: PodTypeRows, diskBytes: number): NodeDescription {
  const unlimited = Number.MAX_SAFE_INTEGER;
  const types = [...publishedGpus.keys(), ...Object.keys(rows)];
  const budgets = types.flatMap((type) => {
    const budget = typeBudget(type, rows[type] ?? {}, diskBytes);
    return budget === null ? [] : [[type, budget] as const];
  });
  return {
    id: parseNodeId("cluster"),
    capacity: { memoryBytes: unlimited, vcpuCount: unlimited, gpuCount: 0, diskBytes },
    labels: {},
    instanceTypes: Object.fromEntries(budgets),
  };
}

function typeBudget(type: string, row: PodTypeRow, diskBytes: number): InstanceBudget | null {
  const published = instanceTypeSize(type);
  const vcpuCount = row.cpu === undefined ? published?.vcpuCount : parseQuantity(row.cpu);
  const memoryBytes = row.memory === undefined ? published?.memoryBytes : Math.floor(parseQuantity(row.memory));
  if (vcpuCount === undefined || memoryBytes === undefined) return null;
  return { vcpuCount, memoryBytes, acceleratorCount: row.gpus ?? publishedGpus.get(type) ?? 0, diskBytes };
}
