import { S3Client, type S3ClientConfig } from "@aws-sdk/client-s3";
import { AwsError, type Logger } from "@galatea/base";

export interface S3StoreAddress {
  /** URL of the service, such as `https://s3.eu-central-1.amazonaws.com`. */
  readonly endpoint: string;
  /** Region of signatures and of new buckets. */
  readonly region: string;
  /** By default those of the environment, of the AWS credentials file, or of the machine's role. */
  readonly credentials?: S3ClientConfig["credentials"];
}

/** Options of one call, passed on to the client. */
export interface S3CallOptions {
  readonly abortSignal: AbortSignal;
}

export interface S3CallLimits {
  readonly signal?: AbortSignal | undefined;
  /** Code of a response with status 404 and no body, which HEAD has. */
  readonly absentCode?: string;
  /** Maximum duration until the response has begun, repetitions included. */
  readonly deadlineMs?: number;
}

const connectMs = 3000;
/** Maximum time without a byte in either direction. */
const idleMs = 60_000;
const deadlineMs = 10_000;
/** For calls that carry up to 5 GiB, or during which the service copies as much. */
export const transferDeadlineMs = 30 * 60_000;
const connectionsMax = 256;
const attemptsMax = 8;

/** Calls an S3 service within deadlines, and throws its errors as AwsError. */
export class S3Connection implements Disposable {
  readonly #address: S3StoreAddress;
  readonly #logger: Logger;
  readonly #repeating: S3Client;
  readonly #once: S3Client;
  #isAway = false;

  constructor(address: S3StoreAddress, logger: Logger) {
    this.#address = address;
    this.#logger = logger;
    const agent = { maxSockets: connectionsMax, keepAlive: true };
    const config: S3ClientConfig = {
      endpoint: address.endpoint,
      region: address.region,
      forcePathStyle: true,
      followRegionRedirects: true,
      // Stores that know no trailing checksums are supported; Content-MD5 protects each body.
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
      logger: unusedLogger,
      requestHandler: { connectionTimeout: connectMs, socketTimeout: idleMs, httpAgent: agent, httpsAgent: agent },
      ...(address.credentials === undefined ? {} : { credentials: address.credentials }),
    };
    this.#repeating = new S3Client({ ...config, maxAttempts: attemptsMax });
    this.#once = new S3Client({ ...config, maxAttempts: 1 });
  }

  get region(): string {
    return this.#address.region;
  }

  /**
   * Makes a call that the client may repeat after a lost connection, a 5xx or SlowDown. While the service does not
   * respond, callers wait for one short attempt each.
   */
  repeatable<Output>(
    send: (client: S3Client, options: S3CallOptions) => Promise<Output>,
    limits?: S3CallLimits,
  ): Promise<Output> {
    if (!this.#isAway) return this.#call(this.#repeating, send, limits);
    return this.#call(this.#once, send, { deadlineMs: connectMs, ...limits });
  }

  /** Makes a call whose repetition may have another outcome than the call. */
  once<Output>(
    send: (client: S3Client, options: S3CallOptions) => Promise<Output>,
    limits?: S3CallLimits,
  ): Promise<Output> {
    return this.#call(this.#once, send, limits);
  }

  async #call<Output>(
    client: S3Client,
    send: (client: S3Client, options: S3CallOptions) => Promise<Output>,
    limits: S3CallLimits = {},
  ): Promise<Output> {
    const deadline = new AbortController();
    // Not AbortSignal.timeout: it would also end the body of a response that began in time.
    const timer = setTimeout(() => deadline.abort(), limits.deadlineMs ?? deadlineMs);
    const signals = [deadline.signal, ...(limits.signal === undefined ? [] : [limits.signal])];
    try {
      limits.signal?.throwIfAborted();
      const output = await send(client, { abortSignal: AbortSignal.any(signals) });
      this.#noteReachable(null);
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
    const { name, message, $metadata } = cause as Error & { $metadata?: { httpStatusCode?: number } };
    const { endpoint } = this.#address;
    const status = $metadata?.httpStatusCode;
    if (name === "CredentialsProviderError" || ownCredentialCodes.has(name)) {
      this.#logger.error("the object store rejects the platform's credentials", { endpoint, error: message });
      const text = "The object store rejects the platform's credentials";
      return new AwsError("InternalError", text, { cause, statusFallback: 500 });
    }
    if (status === undefined || (status >= 500 && status !== 501) || name === "SlowDown" || status === 429) {
      this.#noteReachable(`${name}: ${message}`);
      const text = "The object store does not respond. Please reduce your request rate or try again later.";
      return new AwsError("ServiceUnavailable", text, { cause, statusFallback: 503 });
    }
    this.#noteReachable(null);
    if (status === 404 && ["NotFound", "UnknownError", "Unknown"].includes(name)) {
      return new AwsError(absentCode, absentTexts[absentCode] ?? "Not found", { cause, statusFallback: 404 });
    }
    const code = codesOfStatus[status] ?? name;
    return new AwsError(code, message === "UnknownError" ? code : message, { cause, statusFallback: status });
  }

  /** Logs the change between a service that responds and one that does not. */
  #noteReachable(failure: string | null): void {
    const { endpoint } = this.#address;
    if (failure !== null && !this.#isAway) {
      this.#logger.warning("the object store does not respond; its callers get 503", { endpoint, error: failure });
    }
    if (failure === null && this.#isAway) this.#logger.info("the object store responds again", { endpoint });
    this.#isAway = failure !== null;
  }

  [Symbol.dispose](): void {
    this.#repeating.destroy();
    this.#once.destroy();
  }
}

/** Keeps the client from writing to the console: its errors are thrown here. */
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

/** Codes of responses to HEAD, which have no body with a code. */
const codesOfStatus: Readonly<Record<number, string>> = {
  403: "AccessDenied",
  412: "PreconditionFailed",
  416: "InvalidRange",
};
