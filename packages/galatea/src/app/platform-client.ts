import { createLogger, systemClock } from "@galatea/base";
import { signedHeaders } from "@galatea/aws/signing";
import { calledPlatform, type CalledPlatform } from "./called-platform.ts";
import { KeysRefusal } from "@galatea/aws/owner-keys";
import type { PlatformAddressOptions } from "../options/index.ts";
import { PlatformChoice } from "../data-directory/index.ts";

/** What a command could not have of the platform; the message is printed as it is. */
export class PlatformRefusal extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "PlatformRefusal";
  }
}

/** Asks a running platform for what is its own, below /galatea/, signed with the owner's key. */
export class PlatformClient {
  readonly #platform: CalledPlatform;

  private constructor(platform: CalledPlatform) {
    this.#platform = platform;
  }

  static async open(place: PlatformAddressOptions): Promise<PlatformClient> {
    const log = createLogger((_level, message, fields) => {
      process.stderr.write(`galatea: ${message} ${JSON.stringify(fields)}\n`);
    });
    return new PlatformClient(await calledPlatform(place, process.env, log));
  }

  /** The answer's JSON; throws PlatformRefusal with the platform's own sentence, or with why there is no answer. */
  async ask(method: "GET" | "POST", path: string): Promise<unknown> {
    const { region, key } = this.#platform;
    const url = new URL(path, this.#platform.url);
    const asked = { method, url, body: "", region, service: "sagemaker", timeMs: systemClock.epochMs() };
    let reply: Response;
    try {
      reply = await fetch(url, { method, headers: signedHeaders(asked, key) });
    } catch (cause) {
      const why = (cause as { readonly cause?: Error }).cause?.message ?? String(cause);
      throw new PlatformRefusal(`no platform answers at ${url.origin}: ${why}`, cause);
    }
    const text = await reply.text();
    if (reply.ok) return JSON.parse(text);
    throw new PlatformRefusal(messageOf(text) ?? `the platform answered ${reply.status}`);
  }
}

function messageOf(text: string): string | null {
  try {
    const { message, Message } = JSON.parse(text) as { readonly message?: string; readonly Message?: string };
    return message ?? Message ?? null;
  } catch {
    return null;
  }
}

/** Runs a command that asks a platform; 1 where the platform, or the network, refuses. */
export async function withPlatformClient(
  command: string,
  place: PlatformAddressOptions,
  run: (client: PlatformClient) => Promise<number>,
) {
  try {
    return await run(await PlatformClient.open(place));
  } catch (error) {
    const isRefusal = [PlatformRefusal, KeysRefusal, PlatformChoice].some((each) => error instanceof each);
    if (!isRefusal) throw error;
    process.stderr.write(`galatea ${command}: ${(error as Error).message}\n`);
    return 1;
  }
}
