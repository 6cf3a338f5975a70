/** The resources that an instance may use on its node. */
export interface InstanceBudget {
  readonly vcpuCount: number;
  readonly memoryBytes: number;
  /** Number of GPUs; 0 if absent. */
  readonly acceleratorCount?: number;
  /** Bytes of disk; unlimited if absent. */
  readonly diskBytes?: number;
}

const gibi = 2 ** 30;

/** GiB of memory per vCPU of each instance family. The number of vCPUs follows from the size: xlarge has 4, Nxlarge has 4 N. */
const gibPerVcpu: Readonly<Record<string, number>> = {
  m4: 4,
  m5: 4,
  m5d: 4,
  m6i: 4,
  m6id: 4,
  m6g: 4,
  m6gd: 4,
  m7i: 4,
  m8g: 4,
  c4: 1.875,
  c5: 2,
  c5d: 2,
  c6i: 2,
  c6id: 2,
  c6g: 2,
  c6gd: 2,
  c6gn: 2,
  c7g: 2,
  c7i: 2,
  c8g: 2,
  r5: 8,
  r5d: 8,
  r6i: 8,
  r6id: 8,
  r6g: 8,
  r6gd: 8,
  r7i: 8,
  r7gd: 8,
  r8g: 8,
  t2: 4,
  t3: 4,
  g4dn: 4,
  g5: 4,
  g6: 4,
  g6e: 8,
  gr6: 8,
  p2: 15.25,
  p3: 7.625,
  p3dn: 8,
  p4d: 12,
  p4de: 12,
  p5: 32 / 3,
  p5e: 32 / 3,
  p5en: 32 / 3,
  inf1: 2,
  inf2: 4,
  trn1: 4,
  trn1n: 4,
  trn2: 32 / 3,
};

/** Instance types whose size differs from the rule of their family. */
const exceptions: Readonly<Record<string, readonly [vcpuCount: number, gib: number]>> = {
  "t2.medium": [2, 4],
  "t2.large": [2, 8],
  "t3.medium": [2, 4],
  "t3.large": [2, 8],
  "c4.8xlarge": [36, 60],
  "inf1.6xlarge": [24, 48],
  "trn1.32xlarge": [128, 512],
};

const sizes: Readonly<Record<string, number>> = { medium: 1, large: 2, xlarge: 4 };

/** Returns the published vCPUs and memory of an instance type `ml.<family>.<size>`; null for an unknown type. */
export function instanceTypeSize(name: string): { readonly vcpuCount: number; readonly memoryBytes: number } | null {
  const [prefix, family = "", size = ""] = name.split(".");
  if (prefix !== "ml") return null;
  const exception = exceptions[`${family}.${size}`];
  if (exception !== undefined) return { vcpuCount: exception[0], memoryBytes: exception[1] * gibi };
  const perVcpu = gibPerVcpu[family];
  const multiple = /^(\d+)xlarge$/.exec(size)?.[1];
  const vcpuCount = multiple === undefined ? sizes[size] : Number(multiple) * 4;
  if (perVcpu === undefined || vcpuCount === undefined) return null;
  return { vcpuCount, memoryBytes: vcpuCount * perVcpu * gibi };
}
