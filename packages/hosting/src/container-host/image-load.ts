import { createReadStream } from "node:fs";
import { once } from "node:events";
import type { Clock } from "@galatea/base";
import { EngineClient } from "./engine-client.ts";
import { readProgress } from "./image-pull.ts";

/**
 * Loads the images of an archive into an engine's store. Resolves with the lines that the engine prints, such as
 * `Loaded image: churn:3`. Rejects with Node's error if the file cannot be opened, or with the engine's error.
 */
export async function loadImage(
  path: string,
  { address, clock }: { readonly address: string; readonly clock: Clock },
): Promise<readonly string[]> {
  const archive = createReadStream(path);
  await once(archive, "open");
  await using client = new EngineClient(address, clock);
  return await readProgress(await client.stream({ method: "POST", path: "/images/load", body: archive }));
}
