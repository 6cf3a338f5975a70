import type { KindStart } from "../container-kind.ts";
import { integerVariable } from "../integer-variable.ts";

/** The text that a container answers GET /execution-parameters with: the settings of a transform job that leaves them open. */
export type ExecutionText = (start: KindStart, processorCount: number) => string;

const mebibyte = 2 ** 20;
const contentBytesDefault = 6 * mebibyte;
const contentVariable = "MAX_CONTENT_LENGTH";

/** How long a body may be that XGBoost's container is asked with, where its variable says so. Throws ContainerRefusal. */
export function xgboostBodyBytes({ environment }: KindStart): number | null {
  return integerVariable(environment, [contentVariable], { least: 1, most: 2 ** 30 - 1 });
}

/** XGBoost's, as its Python prints it; with many models, as the Java of their server does. */
export const xgboostExecution: ExecutionText = (start, processorCount) => {
  const megabytes = Math.floor((xgboostBodyBytes(start) ?? contentBytesDefault) / mebibyte);
  const members = { MaxConcurrentTransforms: 1, BatchStrategy: "MULTI_RECORD", MaxPayloadInMB: megabytes };
  if (start.isMultiModel) return JSON.stringify(members, null, 2);
  return `{"MaxConcurrentTransforms": ${processorCount}, "BatchStrategy": "MULTI_RECORD", "MaxPayloadInMB": ${megabytes}}`;
};

/** Spark ML's, as its Java prints it. */
export const sparkExecution: ExecutionText = (_, processorCount) =>
  `{"MaxConcurrentTransforms":${processorCount},"BatchStrategy":"SINGLE_RECORD","MaxPayloadInMB":5}`;
