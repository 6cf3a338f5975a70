import type { ResolutionMs, SeriesKey, SeriesRecorder } from "@galatea/base/metrics";

/** Opens a metric series for recording. The default resolution is one minute. Called once for each series, not for each sample. */
export type OpenSeries = (key: SeriesKey, resolutionMs?: ResolutionMs) => SeriesRecorder;

const modelNamespace = "AWS/SageMaker";
const instanceNamespace = "/aws/sagemaker/Endpoints";
const componentNamespace = "/aws/sagemaker/InferenceComponents";

/** Units of a variant's metrics, as CloudWatch spells them. */
const variantUnits = {
  Invocations: "None",
  InvocationsPerInstance: "None",
  Invocation4XXErrors: "None",
  Invocation5XXErrors: "None",
  InvocationModelErrors: "None",
  ModelLatency: "Microseconds",
  OverheadLatency: "Microseconds",
} as const;

/** Units of the metrics of streamed responses. */
const streamUnits = {
  FirstChunkLatency: "Microseconds",
  FirstChunkModelLatency: "Microseconds",
  FirstChunkOverheadLatency: "Microseconds",
  MidStreamErrors: "None",
} as const;

const multiModelUnits = {
  ModelLoadingWaitTime: "Microseconds",
  ModelDownloadingTime: "Microseconds",
  ModelLoadingTime: "Microseconds",
  ModelUnloadingTime: "Microseconds",
  ModelCacheHit: "None",
} as const;

const serverlessUnits = {
  ModelSetupTime: "Microseconds",
  ServerlessConcurrentExecutionsUtilization: "None",
} as const;

/** Units of the metrics of serverless variants with provisioned concurrency. */
const provisionedUnits = {
  ServerlessProvisionedConcurrencyExecutions: "Count",
  ServerlessProvisionedConcurrencyUtilization: "None",
  ServerlessProvisionedConcurrencyInvocations: "None",
  ServerlessProvisionedConcurrencySpilloverInvocations: "None",
} as const;

const instanceUnits = {
  CPUUtilization: "Percent",
  MemoryUtilization: "Percent",
  DiskUtilization: "Percent",
  GPUUtilization: "Percent",
  GPUMemoryUtilization: "Percent",
  LoadedModelCount: "None",
} as const;

/** Units of the metrics of a single container, recorded if an instance has several. */
const containerUnits = {
  Invocations: "None",
  Invocation4XXErrors: "None",
  Invocation5XXErrors: "None",
  ContainerLatency: "Microseconds",
  OverheadLatency: "Microseconds",
} as const;

const containerUseUnits = {
  CPUUtilization: "Percent",
  MemoryUtilization: "Percent",
  DiskUtilization: "Percent",
  GPUUtilization: "Percent",
  GPUMemoryUtilization: "Percent",
} as const;

/** Units of the metrics of single models of a multi-model endpoint. SageMaker has no such metrics; they are in the namespace Galatea/Models. */
const perModelUnits = {
  Invocations: "None",
  ModelLatency: "Microseconds",
  ModelCacheHit: "None",
  ModelLoadingTime: "Microseconds",
} as const;

export type VariantMetric = keyof typeof variantUnits;
export type StreamMetric = keyof typeof streamUnits;
export type MultiModelMetric = keyof typeof multiModelUnits;
const componentUnits = {
  InvocationsPerCopy: "None",
} as const;

export type ComponentMetric = keyof typeof componentUnits;
export type ServerlessMetric = keyof typeof serverlessUnits | keyof typeof provisionedUnits;
export type InstanceMetric = keyof typeof instanceUnits;
export type ContainerMetric = keyof typeof containerUnits;
export type ContainerUsageMetric = keyof typeof containerUseUnits;
export type TargetModelMetric = keyof typeof perModelUnits;

/** Resolution of metrics that autoscaling uses to react within a minute. */
const highResolutionMs = 10_000;

/** Maximum number of models of one variant whose series stay open. Above it, the series of a model is opened again for each sample. */
const openModelsMax = 1000;

interface PerModel {
  readonly record: (metric: TargetModelMetric, value: number) => void;
}

/**
 * Records the metrics of one variant. Each metric is recorded with the dimensions {EndpointName, VariantName}, and again
 * with EndpointConfigName, because CloudWatch finds a series only by its exact set of dimensions.
 */
export class VariantMetrics {
  readonly #open: OpenSeries;
  readonly #dimensions: SeriesKey["dimensions"];
  readonly #variant: Readonly<Record<VariantMetric, readonly SeriesRecorder[]>>;
  /** Series of streamed responses. The first streamed response opens them, because most variants have none. */
  readonly #streams = new Map<StreamMetric, readonly SeriesRecorder[]>();
  readonly #openStream: (metric: StreamMetric) => readonly SeriesRecorder[];
  readonly #multiModel: ReadonlyMap<MultiModelMetric, readonly SeriesRecorder[]>;
  readonly #serverless: ReadonlyMap<string, readonly SeriesRecorder[]>;
  readonly #component: ReadonlyMap<string, readonly SeriesRecorder[]>;
  readonly #instance: Readonly<Record<InstanceMetric, readonly SeriesRecorder[]>>;
  readonly #containers: ReadonlyMap<string, Readonly<Record<ContainerMetric, readonly SeriesRecorder[]>>>;
  readonly #uses: ReadonlyMap<string, Readonly<Record<ContainerUsageMetric, readonly SeriesRecorder[]>>>;
  readonly #models = new Map<string, PerModel>();
  /** Series of the requests in flight; null until the first request. */
  #concurrency: SeriesRecorder | null = null;
  /** Series of requests that found no copy; null until the first such request. */
  #noCapacity: readonly SeriesRecorder[] | null = null;
  readonly #openFine: (metricName: string) => readonly SeriesRecorder[];

  constructor(
    open: OpenSeries,
    names: {
      readonly endpoint: string;
      readonly variant: string;
      readonly config: string;
      readonly multiModel: boolean;
      readonly serverless?: boolean;
      /** Name of the inference component whose copies the metrics are about; null for a variant with a model. */
      readonly component?: string | null;
      /** Names of the containers if the model has several, which then have separate series; else empty. */
      readonly containers: readonly string[];
    },
  ) {
    this.#open = open;
    const { component = null } = names;
    const ofVariant = [
      { name: "EndpointName", value: names.endpoint },
      { name: "VariantName", value: names.variant },
    ];
    const ofComponent = component === null ? [] : [{ name: "InferenceComponentName", value: component }];
    // Autoscaling queries the metrics of a component with InferenceComponentName as the only dimension.
    const two = component === null ? ofVariant : ofComponent;
    const three = [
      ...ofVariant,
      ...(component === null ? [{ name: "EndpointConfigName", value: names.config }] : ofComponent),
    ];
    this.#dimensions = two;
    const openAll = <Name extends string>(
      namespace: string,
      units: Readonly<Record<Name, string>>,
      sets: (typeof two)[],
    ) => {
      const series: Partial<Record<Name, readonly SeriesRecorder[]>> = {};
      for (const metricName of Object.keys(units) as Name[]) {
        const unit = units[metricName];
        series[metricName] = sets.map((dimensions) => open({ namespace, metricName, dimensions, unit }));
      }
      return series as Record<Name, readonly SeriesRecorder[]>;
    };
    this.#variant = openAll(modelNamespace, variantUnits, [two, three]);
    this.#openStream = (metricName) =>
      [two, three].map((dimensions) =>
        open({ namespace: modelNamespace, metricName, dimensions, unit: streamUnits[metricName] }),
      );
    this.#openFine = (metricName) =>
      [two, three].map((dimensions) =>
        open({ namespace: modelNamespace, metricName, dimensions, unit: "None" }, highResolutionMs),
      );
    const multiModel = names.multiModel ? openAll(modelNamespace, multiModelUnits, [two]) : null;
    this.#multiModel = new Map(
      multiModel === null ? [] : (Object.entries(multiModel) as [MultiModelMetric, readonly SeriesRecorder[]][]),
    );
    const serverless = names.serverless === true ? { ...serverlessUnits, ...provisionedUnits } : {};
    this.#serverless = new Map(Object.entries(openAll(modelNamespace, serverless, [two, three])));
    const copies = component === null ? {} : { ...componentUnits };
    this.#component = new Map(Object.entries(openAll<string>(modelNamespace, copies, [two, three])));
    this.#instance = openAll(component === null ? instanceNamespace : componentNamespace, instanceUnits, [two]);
    const ofContainers = <Name extends string>(namespace: string, units: Readonly<Record<Name, string>>) =>
      new Map(
        names.containers.map((name) => [
          name,
          openAll(namespace, units, [[...two, { name: "ContainerName", value: name }]]),
        ]),
      );
    this.#containers = ofContainers(modelNamespace, containerUnits);
    this.#uses = ofContainers(instanceNamespace, containerUseUnits);
  }

  record(metric: VariantMetric, value: number): void {
    for (const series of this.#variant[metric]) series.record(value);
    if (metric === "InvocationsPerInstance") this.recordComponent("InvocationsPerCopy", value);
  }

  recordStream(metric: StreamMetric, value: number): void {
    let series = this.#streams.get(metric);
    if (series === undefined) this.#streams.set(metric, (series = this.#openStream(metric)));
    for (const each of series) each.record(value);
  }

  /** Records the number of requests in flight per instance, with a resolution of ten seconds for autoscaling. */
  recordConcurrency(count: number): void {
    const metricName = this.#component.size === 0 ? "ConcurrentRequestsPerModel" : "ConcurrentRequestsPerCopy";
    const key = { namespace: modelNamespace, metricName, unit: "Count" };
    this.#concurrency ??= this.#open({ ...key, dimensions: this.#dimensions }, highResolutionMs);
    this.#concurrency.record(count);
  }

  /**
   * Records a request for a component without a copy, with a resolution of ten seconds: alarms on this metric are
   * evaluated every 30 seconds.
   */
  recordNoCapacity(): void {
    this.#noCapacity ??= this.#openFine("NoCapacityInvocationFailures");
    for (const series of this.#noCapacity) series.record(1);
  }

  recordMultiModel(metric: MultiModelMetric, value: number): void {
    for (const series of this.#multiModel.get(metric) ?? []) series.record(value);
  }

  recordComponent(metric: ComponentMetric, value: number): void {
    for (const series of this.#component.get(metric) ?? []) series.record(value);
  }

  recordServerless(metric: ServerlessMetric, value: number): void {
    for (const series of this.#serverless.get(metric) ?? []) series.record(value);
  }

  recordInstance(metric: InstanceMetric, value: number): void {
    for (const series of this.#instance[metric]) series.record(value);
  }

  /** Records a metric with the dimensions {EndpointName, VariantName, ContainerName}. Does nothing if the instance has one container. */
  recordContainer(container: string, metric: ContainerMetric, value: number): void {
    for (const series of this.#containers.get(container)?.[metric] ?? []) series.record(value);
  }

  /** Records the CPU, memory or GPU usage of a container. Does nothing if the instance has one container. */
  recordContainerUsage(container: string, metric: ContainerUsageMetric, value: number): void {
    for (const series of this.#uses.get(container)?.[metric] ?? []) series.record(value);
  }

  /** Records a metric of one model in the namespace `Galatea/Models`, with the dimensions {EndpointName, VariantName, TargetModel}. */
  recordTargetModel(target: string, metric: TargetModelMetric, value: number): void {
    let model = this.#models.get(target);
    if (model === undefined) {
      model = this.#openModel(target);
      if (this.#models.size >= openModelsMax) {
        const [oldest] = this.#models.keys();
        if (oldest !== undefined) this.#models.delete(oldest);
      }
      this.#models.set(target, model);
    }
    model.record(metric, value);
  }

  #openModel(target: string): PerModel {
    const dimensions = [...this.#dimensions, { name: "TargetModel", value: target }];
    const series = new Map<TargetModelMetric, SeriesRecorder>();
    return {
      record: (metricName, value) => {
        let recorder = series.get(metricName);
        if (recorder === undefined) {
          recorder = this.#open({
            namespace: "Galatea/Models",
            metricName,
            dimensions,
            unit: perModelUnits[metricName],
          });
          series.set(metricName, recorder);
        }
        recorder.record(value);
      },
    };
  }
}
