import type { Clock } from "@galatea/base";
import type { AsyncInvocation } from "./async-invocation.ts";
import type { RequestMetric } from "./async-metrics.ts";

/** The instance of a run and the durations of its steps, by the names and in the units of their metrics. */
export interface RunTrace {
  /** `variant/instance`; null for a run that reached no instance. */
  instance: string | null;
  readonly times: Partial<Record<"ModelLatency" | RequestMetric, number>>;
}

export const emptyTrace = (): RunTrace => ({ instance: null, times: {} });

/** Returns `variant/instance` from the ARN of a container's log stream. */
export function instanceOfLog(logStreamArn: string): string | null {
  const [variant, instance] = (logStreamArn.split(":log-stream:")[1] ?? "").split("/");
  return variant === undefined || instance === undefined ? null : `${variant}/${instance}`;
}

type OpenLog = (group: string, stream: string) => (chunk: Uint8Array) => void;

const streamsMax = 64;
/** Maximum number of characters of a model's text; the failure object has all of it. */
const textCharsMax = 4096;

/**
 * The lines that SageMaker writes about asynchronous invocations in addition to containers' output: to the stream
 * `variant/instance/data-log` of the endpoint's log group, or `variant/data-log` for a request that reached no
 * instance.
 */
export class DataLog {
  readonly #group: string;
  readonly #open: OpenLog;
  readonly #clock: Clock;
  /** The most recently used streams. */
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

  /** Writes one line; line breaks in the text are replaced. */
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
