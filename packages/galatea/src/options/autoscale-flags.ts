import { integerFlag, parsedFlag, textFlag, UsageError, type Flag } from "./flag.ts";
import type { OptionsOf, Parsed } from "./parse-flags.ts";

const capacityMax = 10_000;
const capacityFlag = (initial: number, about: string) =>
  integerFlag({ default: initial, min: 0, max: capacityMax, about });
/** Names of metrics with commas between them. */
const metricNames = (about: string): Flag<readonly string[]> =>
  parsedFlag({ default: "", about }, (text) => text.split(",").filter((name) => name !== ""));

/** The flags of `galatea autoscale simulate`. */
export const autoscaleFlags = {
  policy: textFlag({ about: "file of a policy, as PutScalingPolicy takes it, or of its configuration alone" }),
  alarm: textFlag({ about: "file of the alarm that runs a step policy, as PutMetricAlarm takes it" }),
  plan: textFlag({ about: "requests a second over time: 0-5m:10rps,5m-20m:200rps,20m-30m:200..10rps" }),
  series: textFlag({
    about:
      "file of recorded metrics: CSV of times and values, with a line of names such as time,m1,m2 where the policy has several, or an answer of GetMetricData or GetMetricStatistics",
  }),
  totals: metricNames(
    "of a series: metrics that are the same however many instances there are, such as a backlog: m1,m2",
  ),
  "instance-counts": metricNames(
    "of a series: metrics that are the number of instances in service, and need no column: m3",
  ),
  "recorded-instances": integerFlag({
    default: 1,
    min: 1,
    max: capacityMax,
    about: "how many instances shared the load when the series was recorded",
  }),
  "metric-per-request": parsedFlag(
    {
      default: "1",
      about:
        "of a plan: what a request a second is on the policy's metric, where one instance has it, such as 0.5 (percent)",
    },
    metricPerRequest,
  ),
  min: capacityFlag(1, "MinCapacity of the target"),
  max: capacityFlag(10, "MaxCapacity of the target"),
  start: capacityFlag(1, "instances at the beginning"),
  "startup-secs": integerFlag({
    unit: "seconds",
    default: 60,
    min: 0,
    max: 3600,
    about: "until an instance that is asked for is in service",
  }),
  page: textFlag({ about: "file to write the page to, as HTML" }),
};

type AutoscaleFlagOptions = OptionsOf<typeof autoscaleFlags>;

/** The options of `galatea autoscale simulate`. */
export interface AutoscaleOptions extends AutoscaleFlagOptions {
  readonly policy: string;
}

export function autoscaleOptions({ options, given, positionals }: Parsed<AutoscaleFlagOptions>): AutoscaleOptions {
  const [verb = ""] = positionals;
  if (verb !== "simulate") throw new UsageError(`galatea autoscale takes simulate, and not '${verb}'`);
  const { policy, plan, series } = options;
  if (policy === null) throw new UsageError("galatea autoscale simulate takes a policy: --policy FILE");
  if ((plan === null) === (series === null)) {
    throw new UsageError("galatea autoscale simulate takes a load: either --plan or --series FILE");
  }
  for (const flag of ["recorded-instances", "totals", "instance-counts"]) {
    if (given.has(flag) && plan !== null) throw new UsageError(`--${flag} is of --series`);
  }
  return { ...options, policy };
}

function metricPerRequest(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new UsageError(`invalid value for --metric-per-request: '${text}' is no number above 0`);
}
