import { ByteBudget, systemClock } from "@galatea/base";
import { createPlatformMetrics, EndpointCounters } from "@galatea/hosting/exposition";
import { prometheusMetricNames } from "@galatea/hosting/exposition/endpoint-counters.ts";
import { createServerMetrics } from "galatea/app/serving/server-metrics.ts";
import { codeSpan, markdownTable, referencePage } from "./markdown.ts";

interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: Set<string>;
}

/** Returns the page of the metrics of both servers, as they print them. */
export async function metricsPage(): Promise<string> {
  return referencePage(
    "Metrics",
    "Prometheus scrapes both servers: `galatea serve` at `--metrics-port`, `galatea up` at `/metrics` with the owner's key.",
    [
      `## galatea serve\n\nNames, types and help texts are Triton's where Triton has the metric. A key of \`metric_tags\` is the label \`_key\`. Metrics that models make with \`pb_utils.MetricFamily\` follow.\n\n${familiesTable(await serverText())}`,
      `## galatea up\n\nEvery CloudWatch series is a gauge of the last minute as well, such as \`aws_sagemaker_invocations_sum\`, with its dimensions as labels.\n\n${familiesTable(platformText())}`,
    ],
  );
}

/** Returns the exposition of a server with one model and one GPU. */
async function serverText(): Promise<string> {
  const gpu = {
    uuid: "GPU-0",
    utilization: 0,
    memoryTotalBytes: 0,
    memoryUsedBytes: 0,
    powerWatts: 0,
    powerLimitWatts: 0,
  };
  const metrics = createServerMetrics({
    hostGauges: true,
    intervalMs: 1000,
    clock: systemClock,
    budget: new ByteBudget(1),
    gpus: { readings: () => [gpu], energySinceStart: () => 0 } as never,
  });
  metrics.engine.open({
    model: "m",
    version: "1",
    namespace: "",
    tags: new Map(),
    loadSeconds: 0,
    pendingCount: () => 0,
  });
  return await metrics.text();
}

/** Returns the exposition of a platform that has recorded every metric of one endpoint. */
function platformText(): string {
  const none = { endpoints: new Map(), instancesInServiceCount: 0 };
  const hosting = { statistics: () => none, mirrorStatistics: { bytes: 0, lost: {} } };
  const facts = { startedMs: 0, confinementKinds: ["files"], unconfined: () => ({}) };
  const counters = new EndpointCounters({ exists: () => true, rowsMax: 10 });
  const dimensions = ["EndpointName", "VariantName", "InferenceComponentName"].map((name) => ({ name, value: "x" }));
  for (const metricName of prometheusMetricNames)
    counters
      .wrapRecorder({ namespace: "AWS/SageMaker", metricName, dimensions, unit: "None" }, { record: () => {} })
      .record(1);
  return createPlatformMetrics(hosting as never, facts).prometheusText() + counters.prometheusText();
}

function familiesTable(text: string): string {
  const families = new Map<string, Family>();
  for (const line of text.split("\n")) {
    const [, kind, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (kind === "HELP") families.set(name, { name, type: "", help: rest, labels: new Set() });
    const family = families.get(name);
    if (kind === "TYPE" && family !== undefined) families.set(name, { ...family, type: rest });
    const [, row = "", labels = ""] = /^(\w+)\{(.*)\}/.exec(line) ?? [];
    const of = families.get(row) ?? families.get(row.replace(/_(count|sum|bucket)$/, ""));
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) of?.labels.add(label);
  }
  return markdownTable(
    ["metric", "type", "labels", "meaning"],
    [...families.values()].map(({ name, type, labels, help }) => [
      codeSpan(name),
      type,
      [...labels]
        .filter((label) => label !== "le")
        .map(codeSpan)
        .join(", "),
      help,
    ]),
  );
}
