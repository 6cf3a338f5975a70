import type { AutoscaleOptions } from "../app/index.ts";
import { UsageError, type Flag, type ParsedFlags } from "./flags.ts";

const capacityMax = 10_000;

export const autoscaleFlags: readonly Flag[] = [
  {
    name: "policy",
    kind: "string",
    about: "file of a policy, as PutScalingPolicy takes it, or of its configuration alone",
  },
  { name: "alarm", kind: "string", about: "file of the alarm that runs a step policy, as PutMetricAlarm takes it" },
  { name: "plan", kind: "string", about: "requests a second over time: 0-5m:10rps,5m-20m:200rps,20m-30m:200..10rps" },
  {
    name: "series",
    kind: "string",
    about:
      "file of recorded metrics: CSV of times and values, with a line of names such as time,m1,m2 where the policy has several, or an answer of GetMetricData or GetMetricStatistics",
  },
  {
    name: "totals",
    kind: "string",
    about: "of a series: metrics that are the same however many instances there are, such as a backlog: m1,m2",
  },
  {
    name: "instance-counts",
    kind: "string",
    about: "of a series: metrics that are the number of instances in service, and need no column: m3",
  },
  {
    name: "recorded-instances",
    kind: "integer",
    min: 1,
    max: capacityMax,
    default: 1,
    about: "how many instances shared the load when the series was recorded",
  },
  {
    name: "metric-per-request",
    kind: "string",
    default: "1",
    about:
      "of a plan: what a request a second is on the policy's metric, where one instance has it, such as 0.5 (percent)",
  },
  { name: "min", kind: "integer", min: 0, max: capacityMax, default: 1, about: "MinCapacity of the target" },
  { name: "max", kind: "integer", min: 0, max: capacityMax, default: 10, about: "MaxCapacity of the target" },
  { name: "start", kind: "integer", min: 0, max: capacityMax, default: 1, about: "instances at the beginning" },
  {
    name: "startup-secs",
    kind: "integer",
    min: 0,
    max: 3600,
    default: 60,
    about: "until an instance that is asked for is in service",
  },
  { name: "page", kind: "string", about: "file to write the page to, as HTML" },
];

export function autoscaleOptions({ values, given, positionals }: ParsedFlags): AutoscaleOptions {
  const [verb = ""] = positionals;
  if (verb !== "simulate") throw new UsageError(`galatea autoscale takes simulate, and not '${verb}'`);
  const text = (flag: string) => (values.get(flag) as string | undefined) ?? null;
  const count = (flag: string) => values.get(flag) as number;
  const [policyFile, plan, seriesFile] = [text("policy"), text("plan"), text("series")];
  if (policyFile === null) throw new UsageError("galatea autoscale simulate takes a policy: --policy FILE");
  if ((plan === null) === (seriesFile === null)) {
    throw new UsageError("galatea autoscale simulate takes a load: either --plan or --series FILE");
  }
  for (const flag of ["recorded-instances", "totals", "instance-counts"]) {
    if (given.has(flag) && plan !== null) throw new UsageError(`--${flag} is of --series`);
  }
  const names = (flag: string) => (text(flag) ?? "").split(",").filter((name) => name !== "");
  const metricPerLoad = plan === null ? 1 : Number(text("metric-per-request"));
  if (!(metricPerLoad > 0 && Number.isFinite(metricPerLoad))) {
    throw new UsageError(
      `invalid value for --metric-per-request: '${text("metric-per-request")}' is no number above 0`,
    );
  }
  return {
    policyFile,
    alarmFile: text("alarm"),
    plan,
    seriesFile: seriesFile ?? "",
    recordedInstances: count("recorded-instances"),
    totals: names("totals"),
    instanceCounts: names("instance-counts"),
    metricPerLoad,
    minCapacity: count("min"),
    maxCapacity: count("max"),
    startCapacity: count("start"),
    startupMs: count("startup-secs") * 1000,
    pageFile: text("page"),
  };
}
