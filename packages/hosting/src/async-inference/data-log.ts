import type { Clock } from "@galatea/base";
import type { AsyncInvocation } from "./async-invocation.ts";
import type { AsyncRequestMetric } from "./async-metrics.ts";

/** The instance that processed a request, and the durations of its steps. The keys are metric names; the metrics define the units. */
export interface AsyncRunTrace {
  /** `variant/instance`. Null if the request has not reached an instance. */
  instance: string | null;
  readonly times: Partial<Record<"ModelLatency" | AsyncRequestMetric, number>>;
}

export const newRunTrace = (): AsyncRunTrace => ({ instance: null, times: {} });

/** Returns `variant/instance` from the ARN of a container's log stream. */
export function instanceFromLogStream(logStreamArn: string): string | null {
  const [variant, instance] = (logStreamArn.split(":log-stream:")[1] ?? "").split("/");
  return variant === undefined || instance === undefined ? null : `${variant}/${instance}`;
}

type OpenLog = (group: string, stream: string) => (chunk: Uint8Array) => void;

const streamsMax = 64;
/** Maximum number of characters of a model's error text in the log. The failure object in S3 contains the full text. */
const textCharsMax = 4096;

/**
 * Writes SageMaker's log lines about asynchronous invocations to the endpoint's log group. The stream is
 * `variant/instance/data-log`, or `variant/data-log` if the request has not reached an instance.
 */
export class DataLog {
  readonly #group: string;
  readonly #open: OpenLog;
  readonly #clock: Clock;
  /** Functions that write to the most recently used streams, by stream name. */
  readonly #streams = new Map<string, (chunk: Uint8Array) => void>();

  constructor(endpoint: string, open: OpenLog, clock: Clock) {
    this.#group = `/aws/sagemaker/Endpoints/${endpoint}`;
    this.#open = open;
    this.#clock = clock;
  }

  succeeded(invocation: AsyncInvocation, trace: AsyncRunTrace, totalMs: number): void {
    const { times } = trace;
    const us = (name: keyof typeof times) => `${name}: ${Math.round(times[name] ?? 0)} us`;
    const text =
      `Inference request succeeded. ${us("ModelLatency")}, ${us("RequestDownloadLatency")}, ${us("ResponseUploadLatency")}, ` +
      `TimeInBacklog: ${Math.round(times.TimeInBacklog ?? 0)} ms, TotalProcessingTime: ${Math.round(totalMs)} ms`;
    this.write(invocation, trace, text);
  }

  /** Writes one log line. Line breaks in the text are replaced by spaces. */
  write({ inferenceId, variantName }: AsyncInvocation, { instance }: AsyncRunTrace, text: string): void {
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
