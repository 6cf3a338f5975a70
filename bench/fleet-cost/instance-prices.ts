/** An instance type with its price on demand. */
export interface InstancePrice {
  readonly type: string;
  readonly vcpuCount: number;
  /** vCPUs that it may use all the time: fewer than `vcpuCount` for a type that earns CPU credits. */
  readonly sustainedVcpus: number;
  readonly memoryGib: number;
  readonly hourlyUsd: number;
}

/** Prices of instances as they were published. Replace the figures by your own to price another region or provider. */
export interface PriceTable {
  readonly source: string;
  /** Which figures were compared with copies of the page, and when. */
  readonly checked: string;
  readonly instances: readonly InstancePrice[];
}

const instance = (
  type: string,
  vcpuCount: number,
  memoryGib: number,
  hourlyUsd: number,
  sustainedVcpus = vcpuCount,
): InstancePrice => ({ type, vcpuCount, sustainedVcpus, memoryGib, hourlyUsd });

export const instancePrices: PriceTable = {
  source:
    "Amazon SageMaker pricing (https://aws.amazon.com/sagemaker/pricing/), real-time inference, on demand, US East (N. Virginia), US dollars; CPU credits of t2 from the EC2 user guide",
  checked:
    "ml.t2.medium, ml.c5, ml.m5 to 2xlarge and ml.r5 to 2xlarge were compared with public copies of the page on 2026-11-29; ml.t2.large, the 4xlarge sizes and the CPU credits were not",
  instances: [
    instance("ml.t2.medium", 2, 4, 0.056, 0.4),
    instance("ml.t2.large", 2, 8, 0.111, 0.6),
    instance("ml.c5.large", 2, 4, 0.102),
    instance("ml.c5.xlarge", 4, 8, 0.204),
    instance("ml.c5.2xlarge", 8, 16, 0.408),
    instance("ml.m5.large", 2, 8, 0.115),
    instance("ml.m5.xlarge", 4, 16, 0.23),
    instance("ml.m5.2xlarge", 8, 32, 0.461),
    instance("ml.m5.4xlarge", 16, 64, 0.922),
    instance("ml.r5.large", 2, 16, 0.151),
    instance("ml.r5.xlarge", 4, 32, 0.302),
    instance("ml.r5.2xlarge", 8, 64, 0.605),
    instance("ml.r5.4xlarge", 16, 128, 1.21),
  ],
};
