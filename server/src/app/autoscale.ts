import { readFile, writeFile } from "node:fs/promises";
import { AwsError } from "../base/index.ts";
import type { AutoscaleOptions } from "./options.ts";
import {
  LoadError,
  chartPage,
  parsePlan,
  readSeries,
  simulateScaling,
  chartText,
  type Load,
} from "./simulation/index.ts";

/** `galatea autoscale simulate`: prints what a policy would do, and writes it as a page. 1 for what cannot be read or is refused. */
export async function autoscale(options: AutoscaleOptions): Promise<number> {
  try {
    const simulation = await simulateScaling({
      ...options,
      load: await loadOf(options),
      isRequests: options.plan !== null,
      policy: await jsonOf(options.policyFile),
      alarm: options.alarmFile === null ? null : await jsonOf(options.alarmFile),
    });
    process.stdout.write(chartText(simulation));
    if (options.pageFile !== null) {
      await writeFile(options.pageFile, chartPage(simulation));
      process.stdout.write(`the page is ${options.pageFile}\n`);
    }
    return 0;
  } catch (error) {
    const isTold =
      error instanceof LoadError || error instanceof AwsError || (error as NodeJS.ErrnoException).code !== undefined;
    if (!isTold) throw error;
    process.stderr.write(`galatea autoscale: ${(error as Error).message}\n`);
    return 1;
  }
}

async function loadOf({ plan, seriesFile, recordedInstances }: AutoscaleOptions): Promise<Load> {
  return plan === null ? readSeries(await readFile(seriesFile, "utf8"), recordedInstances) : parsePlan(plan);
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
