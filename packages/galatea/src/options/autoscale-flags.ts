import { integerFlag, parsedFlag, textFlag, UsageError, type Flag } from "./flag.ts";
import type { OptionsOf, Parsed } from "./parse-flags.ts";

const capacityMax = 10_000;
const capacityFlag = (initial: number, about: string) =>
  integerFlag({ default: initial, min: 0, max: capacityMax, about });
/** Returns a flag whose value is a list of metric names, separated by commas. */
const metricNames = (about: string): Flag<readonly string[]> =>
  parsedFlag({ default: "", about }, (text) => text.split(",").filter((name) => name !== ""));

/** The flags of `galatea autoscale simulate`. */
export const autoscaleFlags = {
  policy: textFlag({ about: "JSON file of a policy as in PutScalingPolicy, or of its configuration only" }),
  alarm: textFlag({ about: "JSON file of the alarm that triggers a step policy, as in PutMetricAlarm" }),
  plan: textFlag({ about: "requests a second over time: 0-5m:10rps,5m-20m:200rps,20m-30m:200..10rps" }),
  series: textFlag({
    about:
      "file of recorded metrics: CSV of times and values, with a header line such as time,m1,m2 for a policy with several metrics; or a response of GetMetricData or GetMetricStatistics",
  }),
  totals: metricNames("for --series: metrics that do not depend on the number of instances, such as a backlog: m1,m2"),
  "instance-counts": metricNames(
    "for --series: metrics that are the number of instances in service, and need no column: m3",
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
        "for --plan: the value of the policy's metric at one request per second on one instance, such as 0.5 (percent)",
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
    about: "time from the launch of an instance until it is in service",
  }),
};

type AutoscaleFlagOptions = OptionsOf<typeof autoscaleFlags>;

/** The options of `galatea autoscale simulate`. */
export interface AutoscaleOptions extends AutoscaleFlagOptions {
  readonly policy: string;
}

export function autoscaleOptions({ options, given, positionals }: Parsed<AutoscaleFlagOptions>): AutoscaleOptions {
  const [verb = ""] = positionals;
  if (verb !== "simulate") throw new UsageError(`galatea autoscale takes simulate, not '${verb}'`);
  const { policy, plan, series } = options;
  if (policy === null) throw new UsageError("galatea autoscale simulate takes a policy: --policy FILE");
  if ((plan === null) === (series === null)) {
    throw new UsageError("galatea autoscale simulate takes a load: either --plan or --series FILE");
  }
  for (const flag of ["recorded-instances", "totals", "instance-counts"]) {
    if (given.has(flag) && plan !== null) throw new UsageError(`--${flag} is only for --series`);
  }
  return { ...options, policy };
}

function metricPerRequest(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new UsageError(`invalid value for --metric-per-request: '${text}' is no number above 0`);
}
