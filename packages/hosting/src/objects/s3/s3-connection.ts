import { HeadBucketCommand, S3Client, type S3ClientConfig } from "@aws-sdk/client-s3";
import { AwsError, delay, systemClock, type Logger } from "@galatea/base";
import { backoffMs } from "@galatea/base/processes";

export interface S3StoreAddress {
  /** URL of the service, such as `https://s3.eu-central-1.amazonaws.com`. */
  readonly endpoint: string;
  /** Region for signatures and for new buckets. */
  readonly region: string;
  /** Default: the credentials of the environment, of the AWS credentials file, or of the machine's role. */
  readonly credentials?: S3ClientConfig["credentials"];
}

/** Options of one call, passed on to the client. */
export interface S3CallOptions {
  readonly abortSignal: AbortSignal;
}

/** Sends one request. It is called once for each attempt. */
export type SendCall<Output> = (client: S3Client, options: S3CallOptions) => Promise<Output>;

export interface S3CallLimits {
  readonly signal?: AbortSignal | undefined;
  /** Error code for a 404 response without a body, as HEAD returns. */
  readonly absentCode?: string;
  /**
   * Milliseconds for transferring a body, added to the deadline of a short call. The deadline no longer applies when
   * the response begins.
   */
  readonly transferMs?: number;
  /**
   * A short call that fails with 404 whenever the long call would. It is made before a long call is retried, and before
   * each long call while the service does not respond. Without it, a 404 could be missed, because a service that
   * rejects a body may close the connection before its response is read.
   */
  readonly probe?: SendCall<unknown>;
}

export interface S3Durations {
  /** Maximum milliseconds for connecting; also the deadline of a short call while the service does not respond. */
  readonly connectMs: number;
  /** Maximum milliseconds without traffic in either direction. */
  readonly idleMs: number;
  /** Deadline of one attempt of a short call, in milliseconds. */
  readonly deadlineMs: number;
  /** Milliseconds after the first attempt during which a call is retried. */
  readonly repeatMs: number;
}

export const s3Durations: S3Durations = { connectMs: 3000, idleMs: 60_000, deadlineMs: 10_000, repeatMs: 10_000 };

const transferMsMax = 30 * 60_000;
const transferBytesPerMs = 100;
const pauses = { firstMs: 50, maxMs: 1000, factor: 2, random: Math.random };
const connectionsMax = 256;

/** Returns the limits of a call that sends or receives a body, or during which the service copies or joins one. */
export function transferLimits(bucket: string, byteLength: number, signal: AbortSignal) {
  return {
    signal,
    transferMs: Math.min(transferMsMax, byteLength / transferBytesPerMs),
    probe: (client, options) => client.send(new HeadBucketCommand({ Bucket: bucket }), options),
  } satisfies S3CallLimits;
}

export interface S3ConnectionOptions {
  readonly durations: S3Durations;
  readonly logger: Logger;
}

/** Calls an S3 service with deadlines, and converts errors to AwsError. */
export class S3Connection implements Disposable {
  readonly #address: S3StoreAddress;
  readonly #logger: Logger;
  readonly #durations: S3Durations;
  readonly #client: S3Client;
  #isAway = false;

  constructor(address: S3StoreAddress, { durations, logger }: S3ConnectionOptions) {
    this.#address = address;
    this.#logger = logger;
    this.#durations = durations;
    const agent = { maxSockets: connectionsMax, keepAlive: true };
    this.#client = new S3Client({
      endpoint: address.endpoint,
      region: address.region,
      forcePathStyle: true,
      followRegionRedirects: true,
      // This class retries calls itself: the SDK does not retry calls with streams, and has no deadline over all
      // attempts.
      maxAttempts: 1,
      // Some S3 services do not support trailing checksums. Content-MD5 protects each body instead.
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
      logger: unusedLogger,
      requestHandler: {
        connectionTimeout: durations.connectMs,
        socketTimeout: durations.idleMs,
        httpAgent: agent,
        httpsAgent: agent,
      },
      ...(address.credentials === undefined ? {} : { credentials: address.credentials }),
    });
  }

  get region(): string {
    return this.#address.region;
  }

  /**
   * Makes a call. Retries it for up to 10 s after a lost connection, a 5xx or SlowDown. While the service does not
   * respond, each call makes only one short attempt.
   */
  async repeatable<Output>(send: SendCall<Output>, limits: S3CallLimits = {}): Promise<Output> {
    const endNs = systemClock.monotonicNs() + this.#durations.repeatMs * 1e6;
    for (let failureCount = 0; ;) {
      try {
        return await this.#attempt(send, limits, failureCount > 0);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        if (this.#isAway || systemClock.monotonicNs() >= endNs) throw this.#noteAway(error);
        failureCount += 1;
      }
      await delay(systemClock, backoffMs(failureCount, pauses), limits.signal ?? null);
    }
  }

  /** Makes a call without retries, because it is not idempotent. */
  async once<Output>(send: SendCall<Output>, limits: S3CallLimits = {}): Promise<Output> {
    try {
      return await this.#attempt(send, limits, false);
    } catch (error) {
      throw isUnavailable(error) ? this.#noteAway(error) : error;
    }
  }

  async #attempt<Output>(send: SendCall<Output>, limits: S3CallLimits, isRepeated: boolean): Promise<Output> {
    const { probe, signal } = limits;
    if (probe !== undefined && (isRepeated || this.#isAway)) {
      try {
        await this.#call(probe, { signal, absentCode: "NoSuchBucket" });
      } catch (error) {
        if (isUnavailable(error) || !(error instanceof AwsError) || error.statusFallback === 404) throw error;
      }
    }
    return await this.#call(send, limits);
  }

  async #call<Output>(send: SendCall<Output>, limits: S3CallLimits): Promise<Output> {
    const deadline = new AbortController();
    // AbortSignal.timeout would also abort the body of a response that began in time.
    const { connectMs, deadlineMs } = this.#durations;
    const { transferMs } = limits;
    const callMs = transferMs === undefined && this.#isAway ? connectMs : deadlineMs + (transferMs ?? 0);
    const timer = setTimeout(() => deadline.abort(), callMs);
    const signals = [deadline.signal, ...(limits.signal === undefined ? [] : [limits.signal])];
    const options = { abortSignal: AbortSignal.any(signals) };
    try {
      limits.signal?.throwIfAborted();
      const output = await send(this.#client, options).catch((error: unknown) => {
        // If the service rejected the signature's time, the SDK has corrected its clock, and a second attempt succeeds.
        if ((error as ServiceFailure).$metadata?.clockSkewCorrected !== true) throw error;
        return send(this.#client, options);
      });
      this.#noteResponse();
      return output;
    } catch (cause) {
      limits.signal?.throwIfAborted();
      throw this.#toStoreError(cause, limits.absentCode);
    } finally {
      clearTimeout(timer);
    }
  }

  #toStoreError(cause: unknown, absentCode = "NoSuchKey"): unknown {
    if (cause instanceof AwsError) return cause;
    const { name, message, $metadata } = cause as ServiceFailure;
    const { endpoint } = this.#address;
    const status = $metadata?.httpStatusCode;
    if (name === "CredentialsProviderError" || ownCredentialCodes.has(name)) {
      this.#logger.error("the object store rejects the platform's credentials", { endpoint, error: message });
      const text = "The object store rejects the platform's credentials";
      return new AwsError("InternalError", text, { cause, statusFallback: 500 });
    }
    if (status === undefined || (status >= 500 && status !== 501) || status === 429 || busyCodes.has(name)) {
      const text = "The object store does not respond. Please reduce your request rate or try again later.";
      return new AwsError("ServiceUnavailable", text, { cause, statusFallback: 503 });
    }
    this.#noteResponse();
    if (status === 404 && ["NotFound", "UnknownError", "Unknown"].includes(name)) {
      return new AwsError(absentCode, absentTexts[absentCode] ?? "Not found", { cause, statusFallback: 404 });
    }
    const code = codesOfStatus[status] ?? name;
    return new AwsError(code, message === "UnknownError" ? code : message, { cause, statusFallback: status });
  }

  #noteAway(error: AwsError): AwsError {
    const { endpoint } = this.#address;
    if (!this.#isAway) {
      this.#logger.warning("the object store does not respond; its callers get 503", {
        endpoint,
        error: String(error.cause),
      });
    }
    this.#isAway = true;
    return error;
  }

  #noteResponse(): void {
    const { endpoint } = this.#address;
    if (this.#isAway) this.#logger.info("the object store responds again", { endpoint });
    this.#isAway = false;
  }

  [Symbol.dispose](): void {
    this.#client.destroy();
  }
}

/** An error of the SDK. If the status is absent, there was no response. */
type ServiceFailure = Error & {
  readonly $metadata?: { readonly httpStatusCode?: number; readonly clockSkewCorrected?: true };
};

const isUnavailable = (error: unknown): error is AwsError =>
  error instanceof AwsError && error.code === "ServiceUnavailable";

/** Retryable errors whose status is not 5xx. ClientDisconnected is sent by MinIO. */
const busyCodes: ReadonlySet<string> = new Set(["SlowDown", "RequestTimeout", "ClientDisconnected"]);

/** Prevents the SDK from writing to the console; this class throws or logs its errors. */
const unusedLogger = { debug() {}, info() {}, warn() {}, error() {} };

const ownCredentialCodes: ReadonlySet<string> = new Set([
  "InvalidAccessKeyId",
  "SignatureDoesNotMatch",
  "ExpiredToken",
  "InvalidToken",
  "RequestTimeTooSkewed",
]);

const absentTexts: Readonly<Record<string, string>> = {
  NoSuchKey: "The specified key does not exist.",
  NoSuchBucket: "The specified bucket does not exist",
};

/** Error codes for responses to HEAD, whose error has no body with a code. */
const codesOfStatus: Readonly<Record<number, string>> = {
  403: "AccessDenied",
  412: "PreconditionFailed",
  416: "InvalidRange",
};
