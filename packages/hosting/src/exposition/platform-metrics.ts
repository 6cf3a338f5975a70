import { MetricRegistry, type CounterRow } from "@galatea/base/metrics";
import { mirrorDropReasons, type EndpointState, type Hosting } from "../index.ts";

export interface PlatformMetrics {
  /** Counts a request that has ended. `status` is the HTTP status, or 0 if the client disconnected before the response. */
  readonly countRequest: (status: number) => void;
  /** Returns the metrics in Prometheus' text format. They contain no names of models or endpoints. */
  readonly prometheusText: () => string;
}

/** SageMaker's endpoint statuses that an endpoint of this platform can have. */
const endpointStatuses = {
  Creating: true,
  InService: true,
  Updating: true,
  RollingBack: true,
  UpdateRollbackFailed: true,
  OutOfService: true,
  Deleting: true,
  Failed: true,
} as const satisfies Record<EndpointState["at"], true>;

const statusClasses = ["gone", "1xx", "2xx", "3xx", "4xx", "5xx"] as const;

export interface PlatformMetricsOptions {
  readonly startedMs: number;
  /** Names of all kinds of isolation between tenants. */
  readonly confinementKinds: readonly string[];
  /** Returns the kinds of isolation that a node cannot apply, each with the reason. */
  readonly unconfined: () => Readonly<Record<string, string>>;
}

export function createPlatformMetrics(
  hosting: Hosting,
  { startedMs, confinementKinds, unconfined }: PlatformMetricsOptions,
): PlatformMetrics {
  const registry = new MetricRegistry({ rowsMax: 100 });
  registry
    .gauge("galatea_start_time_seconds", "Start time of the platform in seconds since 1970.")
    .row({})
    .set(startedMs / 1000);
  const memory = registry.gauge("process_resident_memory_bytes", "Resident memory of the platform's own process.");
  memory.readFrom({}, () => process.memoryUsage.rss());
  const cpu = registry.gauge("process_cpu_seconds", "Processor time of the platform's own process since its start.");
  cpu.readFrom({}, () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  const endpoints = registry.gauge("galatea_endpoints", "Endpoints by status.");
  for (const status of Object.keys(endpointStatuses) as EndpointState["at"][])
    endpoints.readFrom({ status }, () => hosting.statistics().endpoints.get(status) ?? 0);
  const instances = registry.gauge(
    "galatea_instances_in_service",
    "Instances in service: those that pass their health check.",
  );
  instances.readFrom({}, () => hosting.statistics().instancesInServiceCount);
  const mirrored = registry.gauge("galatea_mirrored_bytes", "Bytes of copies for shadow variants and data capture.");
  mirrored.readFrom({}, () => hosting.mirrorStatistics.bytes);
  const lost = registry.gauge("galatea_mirrors_lost", "Copies for shadow variants or data capture that were dropped.");
  for (const reason of mirrorDropReasons) lost.readFrom({ reason }, () => hosting.mirrorStatistics.lost[reason]);
  const gaps = registry.gauge(
    "galatea_tenants_unconfined",
    "1 if a node lacks a kind of isolation between tenants; /health has the reason.",
  );
  for (const what of confinementKinds) gaps.readFrom({ what }, () => (Object.hasOwn(unconfined(), what) ? 1 : 0));
  const requests = registry.counter("galatea_requests_total", "Requests that ended, by the status of the response.");
  const rows = statusClasses.map((status) => requests.row({ status }));
  return {
    countRequest: (status) => (rows[Math.floor(status / 100)] as CounterRow).add(1),
    prometheusText: () => registry.print(),
  };
}
