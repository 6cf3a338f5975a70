import { readFile } from "node:fs/promises";
import { AwsError } from "@galatea/base";
import type { AutoscaleOptions } from "../options/index.ts";
import {
  LoadError,
  parsePlan,
  readTable,
  simulateScaling,
  chartText,
  type MetricSource,
} from "@galatea/tools/simulation";

/**
 * Runs `galatea autoscale simulate`, which prints what a policy would do. Resolves with 1 if an input cannot be read or
 * is rejected.
 */
export async function autoscale(options: AutoscaleOptions): Promise<number> {
  try {
    const simulation = await simulateScaling({
      source: await sourceOf(options),
      policy: await jsonOf(options.policy),
      alarm: options.alarm === null ? null : await jsonOf(options.alarm),
      minCapacity: options.min,
      maxCapacity: options.max,
      startCapacity: options.start,
      startupMs: options.startupSecs * 1000,
    });
    process.stdout.write(chartText(simulation));
    return 0;
  } catch (error) {
    const isReported =
      error instanceof LoadError || error instanceof AwsError || (error as NodeJS.ErrnoException).code !== undefined;
    if (!isReported) throw error;
    process.stderr.write(`galatea autoscale: ${(error as Error).message}\n`);
    return 1;
  }
}

async function sourceOf(options: AutoscaleOptions): Promise<MetricSource> {
  const { plan, series, metricPerRequest: metricPerLoad, recordedInstances, totals, instanceCounts } = options;
  if (plan !== null) return { kind: "planned", load: parsePlan(plan), metricPerLoad };
  return {
    kind: "recorded",
    table: readTable(await readFile(series ?? "", "utf8")),
    instanceCount: recordedInstances,
    totals,
    instanceCounts,
  };
}

async function jsonOf(path: string): Promise<object> {
  const text = await readFile(path, "utf8");
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch (error) {
    throw new LoadError(`${path} is not JSON: ${(error as Error).message}`);
  }
  throw new LoadError(`${path} is not an object of JSON`);
}
