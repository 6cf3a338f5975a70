import type { KindStart } from "../container-kind.ts";
import { integerVariable } from "../integer-variable.ts";

/** Returns the container's response to GET /execution-parameters: the settings of a transform job without its own. */
export type ExecutionText = (start: KindStart, processorCount: number) => string;

const mebibyte = 2 ** 20;
const contentBytesDefault = 6 * mebibyte;
const contentVariable = "MAX_CONTENT_LENGTH";

/** Returns the maximum body length of XGBoost's container, if its variable sets one. Throws ContainerRefusal. */
export function xgboostBodyBytes({ environment }: KindStart): number | null {
  return integerVariable(environment, [contentVariable], { least: 1, most: 2 ** 30 - 1 });
}

/** XGBoost's text, in Python's format; with many models, in the format of their Java server. */
export const xgboostExecution: ExecutionText = (start, processorCount) => {
  const megabytes = Math.floor((xgboostBodyBytes(start) ?? contentBytesDefault) / mebibyte);
  const members = { MaxConcurrentTransforms: 1, BatchStrategy: "MULTI_RECORD", MaxPayloadInMB: megabytes };
  if (start.isMultiModel) return JSON.stringify(members, null, 2);
  return `{"MaxConcurrentTransforms": ${processorCount}, "BatchStrategy": "MULTI_RECORD", "MaxPayloadInMB": ${megabytes}}`;
};

/** Spark ML's text, in Java's format. */
export const sparkExecution: ExecutionText = (_, processorCount) =>
  `{"MaxConcurrentTransforms":${processorCount},"BatchStrategy":"SINGLE_RECORD","MaxPayloadInMB":5}`;
