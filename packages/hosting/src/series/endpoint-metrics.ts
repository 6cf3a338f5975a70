import type { ResolutionMs, SeriesKey, SeriesRecorder } from "@galatea/base/metrics";

/** Opens a series for recording, of minutes by default; called once per series, not per sample. */
export type OpenSeries = (key: SeriesKey, resolutionMs?: ResolutionMs) => SeriesRecorder;

const modelNamespace = "AWS/SageMaker";
const instanceNamespace = "/aws/sagemaker/Endpoints";
const componentNamespace = "/aws/sagemaker/InferenceComponents";

/** Units of metrics, with the service's spellings. */
const variantUnits = {
  Invocations: "None",
  InvocationsPerInstance: "None",
  Invocation4XXErrors: "None",
  Invocation5XXErrors: "None",
  InvocationModelErrors: "None",
  ModelLatency: "Microseconds",
  OverheadLatency: "Microseconds",
} as const;

/** Metrics of streamed responses. */
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

/** Metrics of serverless variants with provisioned concurrency. */
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

/** Metrics of one container of several. */
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

/** Metrics that the service does not have: those of single models, in a namespace of our own. */
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
export type ContainerUseMetric = keyof typeof containerUseUnits;
export type PerModelMetric = keyof typeof perModelUnits;

/** Resolution of the metrics by which scaling reacts within a minute. */
const fineMs = 10_000;

/** Maximum number of models of one variant with open series; a sample of another model opens its series again. */
const openModelsMax = 1000;

interface PerModel {
  readonly record: (metric: PerModelMetric, value: number) => void;
}

/**
 * The series of one variant. Its metrics are recorded under {EndpointName, VariantName} and again with
 * EndpointConfigName: a series is its exact set of dimensions.
 */
export class VariantMetrics {
  readonly #open: OpenSeries;
  readonly #dimensions: SeriesKey["dimensions"];
  readonly #variant: Readonly<Record<VariantMetric, readonly SeriesRecorder[]>>;
  /** Opened by the first stream: most variants have none. */
  readonly #streams = new Map<StreamMetric, readonly SeriesRecorder[]>();
  readonly #openStream: (metric: StreamMetric) => readonly SeriesRecorder[];
  readonly #multiModel: ReadonlyMap<MultiModelMetric, readonly SeriesRecorder[]>;
  readonly #serverless: ReadonlyMap<string, readonly SeriesRecorder[]>;
  readonly #component: ReadonlyMap<string, readonly SeriesRecorder[]>;
  readonly #instance: Readonly<Record<InstanceMetric, readonly SeriesRecorder[]>>;
  readonly #containers: ReadonlyMap<string, Readonly<Record<ContainerMetric, readonly SeriesRecorder[]>>>;
  readonly #uses: ReadonlyMap<string, Readonly<Record<ContainerUseMetric, readonly SeriesRecorder[]>>>;
  readonly #models = new Map<string, PerModel>();
  /** Opened by the first request. */
  #concurrency: SeriesRecorder | null = null;
  /** Opened by the first request without a copy. */
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
      /** Null for a variant with instances of its own. */
      readonly component?: string | null;
      /** Containers of models with several: each has series of its own. */
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
    // Autoscaling queries a component by its name alone.
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
        open({ namespace: modelNamespace, metricName, dimensions, unit: "None" }, fineMs),
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

  /** Records the requests in flight per instance, in points of ten seconds, which scaling within a minute needs. */
  recordConcurrency(count: number): void {
    const metricName = this.#component.size === 0 ? "ConcurrentRequestsPerModel" : "ConcurrentRequestsPerCopy";
    const key = { namespace: modelNamespace, metricName, unit: "Count" };
    this.#concurrency ??= this.#open({ ...key, dimensions: this.#dimensions }, fineMs);
    this.#concurrency.record(count);
  }

  /**
   * Records a request for a component without a copy. Alarms on it evaluate every 30 seconds, for which points of a
   * minute are too coarse.
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

  /** Records under {EndpointName, VariantName, ContainerName}; does nothing for a single container. */
  recordContainer(container: string, metric: ContainerMetric, value: number): void {
    for (const series of this.#containers.get(container)?.[metric] ?? []) series.record(value);
  }

  /** Records the usage of one container of several. */
  recordUse(container: string, metric: ContainerUseMetric, value: number): void {
    for (const series of this.#uses.get(container)?.[metric] ?? []) series.record(value);
  }

  /** Records in the namespace `Galatea/Models` under {EndpointName, VariantName, TargetModel}. */
  recordModel(target: string, metric: PerModelMetric, value: number): void {
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
    const series = new Map<PerModelMetric, SeriesRecorder>();
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
