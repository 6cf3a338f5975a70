import type { Readable } from "node:stream";
import { openDeadline, type Clock } from "@galatea/base";
import { EngineError, type EngineClient } from "./engine-client.ts";
import { readDockerConfig, registryKey } from "./registry-keys.ts";

export interface ImagePullOptions {
  readonly client: EngineClient;
  /** Path of Docker's `config.json`, which contains the credentials for registries. The file may be missing. */
  readonly dockerConfigPath: string;
  readonly clock: Clock;
}

const pullMsMax = 3_600_000;
const progressLineCharsMax = 1 << 20;

/**
 * Pulls an image if the engine's store does not contain it. An image in the store is used as it is, even if the
 * registry has a newer one.
 */
export async function pullImage(image: string, options: ImagePullOptions, outer: AbortSignal): Promise<void> {
  const { client, dockerConfigPath, clock } = options;
  if (await isStored(client, image, outer)) return;
  try {
    const createError = () => new Error(`the registry sent it not within ${pullMsMax / 1000} s`);
    using limit = openDeadline({ clock, afterMs: pullMsMax, signal: outer, createError });
    const key = registryKey(image, await readDockerConfig(dockerConfigPath));
    const path = `/images/create?fromImage=${encodeURIComponent(withTag(image))}`;
    const headers: Record<string, string> = key === null ? {} : { "x-registry-auth": key };
    const progress = await client.stream({ method: "POST", path, headers, signal: limit.signal });
    await readProgress(progress);
  } catch (error) {
    outer.throwIfAborted();
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `The image ${image} is not in the store of the container engine at ${client.address}, and pulling it failed: ${why}. ` +
        `Load it with \`galatea image load FILE\`, or let \`docker login\` write keys of its registry to ${dockerConfigPath}.`,
      { cause: error },
    );
  }
}

async function isStored(client: EngineClient, image: string, signal: AbortSignal): Promise<boolean> {
  try {
    await client.call({ method: "GET", path: `/images/${imagePath(image)}/json`, signal });
    return true;
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return false;
    throw error;
  }
}

/**
 * Returns the image name with a tag or digest; the default is `latest`. Without a tag, the engine would pull all tags
 * of the repository.
 */
function withTag(image: string): string {
  const name = image.slice(image.lastIndexOf("/") + 1);
  return /[:@]/.test(name) ? image : `${image}:latest`;
}

const imagePath = (image: string) => image.split("/").map(encodeURIComponent).join("/");

/**
 * Reads a stream of JSON values, one on each line. Resolves with the last 100 `stream` texts. Rejects with the text of
 * the first `error` member.
 */
export async function readProgress(body: Readable): Promise<readonly string[]> {
  const printed: string[] = [];
  let rest = "";
  const take = (line: string) => {
    if (line.trim() === "") return;
    const { error, stream } = JSON.parse(line) as { readonly error?: string; readonly stream?: string };
    if (error !== undefined) throw new Error(error);
    if (stream !== undefined) printed.push(stream.trimEnd());
  };
  for await (const chunk of body as AsyncIterable<Buffer>) {
    const lines = (rest + chunk.toString("utf8")).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > progressLineCharsMax) throw new Error("the engine's report has a line that is too long");
    for (const line of lines) take(line);
  }
  take(rest);
  return printed.slice(-100);
}
