import { createLogger, systemClock } from "@galatea/base";
import { signRequestHeaders } from "@galatea/aws/signing";
import { resolveTargetPlatform, type TargetPlatform } from "./target-platform.ts";
import { OwnerKeysError } from "@galatea/aws/owner-keys";
import type { PlatformAddressOptions } from "../options/index.ts";
import { dataDirectories, findRunningPlatform, PlatformChoice } from "../data-directory/index.ts";

/** A call that the platform rejected or did not respond to. The message is printed unchanged. */
export class PlatformRequestError extends Error {
  /** The error code of the service; null if the platform did not respond. */
  readonly code: string | null;

  constructor(
    message: string,
    { cause, code = null }: { readonly cause?: unknown; readonly code?: string | null } = {},
  ) {
    super(message, { cause });
    this.name = "PlatformRequestError";
    this.code = code;
  }
}

/** The services that commands call, with the prefix of their operations in X-Amz-Target. */
const targets = { sagemaker: "SageMaker", logs: "Logs_20140328" } as const;

/** Calls a running platform. The owner's key signs the calls. */
export class PlatformClient {
  readonly platform: TargetPlatform;

  private constructor(platform: TargetPlatform) {
    this.platform = platform;
  }

  /** Opens a client. Throws PlatformRequestError if no platform runs and no flag gives an address. */
  static async open(location: PlatformAddressOptions): Promise<PlatformClient> {
    const log = createLogger((_level, message, fields) => {
      process.stderr.write(`galatea: ${message} ${JSON.stringify(fields)}\n`);
    });
    if (location.host === null && location.port === null && findRunningPlatform(location, process.env) === null) {
      const { root } = dataDirectories(location.data, process.env);
      throw new PlatformRequestError(
        `no platform uses '${root}': start one with \`galatea up\`, or select one with --data or --port`,
      );
    }
    return new PlatformClient(await resolveTargetPlatform(location, process.env, log));
  }

  /** Requests a path below /galatea/. Resolves with the response's JSON; rejects with PlatformRequestError. */
  async request(method: "GET" | "POST", path: string): Promise<unknown> {
    return await (await this.#send("sagemaker", { method, path, body: "", headers: {} })).json();
  }

  /** Calls an operation of a service. Resolves with its output; rejects with PlatformRequestError. */
  async call<Output>(service: keyof typeof targets, operation: string, input: object): Promise<Output> {
    return (await (await this.open(service, operation, input)).json()) as Output;
  }

  /**
   * Calls an operation of a service. Resolves with its response once the response's head has arrived; rejects with
   * PlatformRequestError.
   */
  async open(service: keyof typeof targets, operation: string, input: object): Promise<Response> {
    const headers = {
      "content-type": "application/x-amz-json-1.1",
      "x-amz-target": `${targets[service]}.${operation}`,
    };
    return await this.#send(service, { method: "POST", path: "/", body: JSON.stringify(input), headers });
  }

  async #send(service: string, { method, path, body, headers }: CalledPath): Promise<Response> {
    const { region, key } = this.platform;
    const url = new URL(path, this.platform.url);
    const requested = { method, url, body, headers, region, service, timeMs: systemClock.epochMs() };
    let reply: Response;
    try {
      reply = await fetch(url, {
        method,
        headers: signRequestHeaders(requested, key),
        body: body === "" ? null : body,
      });
    } catch (cause) {
      const why = (cause as { readonly cause?: Error }).cause?.message ?? String(cause);
      throw new PlatformRequestError(`no platform responds at ${url.origin}: ${why}`, { cause });
    }
    if (reply.ok) return reply;
    const { message, code } = errorOf(await reply.text());
    throw new PlatformRequestError(message ?? `the platform responded with ${reply.status}`, { code });
  }
}

interface CalledPath {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

function errorOf(text: string): { readonly message: string | null; readonly code: string | null } {
  try {
    const {
      message,
      Message,
      __type: type,
    } = JSON.parse(text) as { readonly message?: string; readonly Message?: string; readonly __type?: string };
    return { message: message ?? Message ?? null, code: type?.split("#").at(-1) ?? null };
  } catch {
    return { message: null, code: null };
  }
}

/**
 * Runs a command that calls a platform. Resolves with 1 and prints the reason if the platform rejects the call or does
 * not respond.
 */
export async function withPlatformClient(
  command: string,
  location: PlatformAddressOptions,
  run: (client: PlatformClient) => Promise<number>,
) {
  return await reporting(command, async () => await run(await PlatformClient.open(location)));
}

/** Runs a command. Resolves with 1 and prints the reason if a server rejects the call or does not respond. */
export async function reporting(command: string, run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    const isRefusal = [PlatformRequestError, OwnerKeysError, PlatformChoice].some((each) => error instanceof each);
    if (!isRefusal) throw error;
    process.stderr.write(`galatea ${command}: ${(error as Error).message}\n`);
    return 1;
  }
}
