import type { Clock } from "@galatea/base";
import type { AsyncInvocation } from "./async-invocation.ts";
import type { RequestMetric } from "./async-metrics.ts";

/** What is known of a run of a request: where it came to, and how long its parts took, by the names and in the units of their metrics. */
export interface RunTrace {
  /** `variant/instance`; null for one that came to no instance. */
  instance: string | null;
  readonly times: Partial<Record<"ModelLatency" | RequestMetric, number>>;
}

export const emptyTrace = (): RunTrace => ({ instance: null, times: {} });

/** `variant/instance` of the stream that the ARN of a container's log names. */
export function instanceOfLog(logStreamArn: string): string | null {
  const [variant, instance] = (logStreamArn.split(":log-stream:")[1] ?? "").split("/");
  return variant === undefined || instance === undefined ? null : `${variant}/${instance}`;
}

type OpenLog = (group: string, stream: string) => (chunk: Uint8Array) => void;

const streamsMax = 64;
/** Of what a model says, of which the failure object has all. */
const textCharsMax = 4096;

/**
 * The lines that SageMaker writes of asynchronous invocations beside what containers print: to the stream `variant/instance/data-log` of
 * the endpoint's log group, or `variant/data-log` for a request that came to no instance.
 */
export class DataLog {
  readonly #group: string;
  readonly #open: OpenLog;
  readonly #clock: Clock;
  /** The last ones that were written to. */
  readonly #streams = new Map<string, (chunk: Uint8Array) => void>();

  constructor(endpoint: string, open: OpenLog, clock: Clock) {
    this.#group = `/aws/sagemaker/Endpoints/${endpoint}`;
    this.#open = open;
    this.#clock = clock;
  }

  succeeded(invocation: AsyncInvocation, trace: RunTrace, totalMs: number): void {
    const { times } = trace;
    const us = (name: keyof typeof times) => `${name}: ${Math.round(times[name] ?? 0)} us`;
    const text =
      `Inference request succeeded. ${us("ModelLatency")}, ${us("RequestDownloadLatency")}, ${us("ResponseUploadLatency")}, ` +
      `TimeInBacklog: ${Math.round(times.TimeInBacklog ?? 0)} ms, TotalProcessingTime: ${Math.round(totalMs)} ms`;
    this.write(invocation, trace, text);
  }

  /** One line, whatever the text has. */
  write({ inferenceId, variantName }: AsyncInvocation, { instance }: RunTrace, text: string): void {
    const stream = `${instance ?? variantName}/data-log`;
    const write = this.#streams.get(stream) ?? this.#open(this.#group, stream);
    this.#streams.delete(stream);
    this.#streams.set(stream, write);
    const [oldest] = this.#streams.keys();
    if (this.#streams.size > streamsMax && oldest !== undefined) this.#streams.delete(oldest);
    const time = new Date(this.#clock.epochMs()).toISOString().slice(0, -1);
    const line = text.slice(0, textCharsMax).replace(/[\r\n]+/g, " ");
    write(Buffer.from(`${time}:[sagemaker logs] [${inferenceId}] ${line}\n`));
  }
}
