import { loadImage } from "@galatea/hosting/container-host";
import { systemClock } from "@galatea/base";
import type { ImageOptions } from "../options/index.ts";

/** `galatea image load`: loads an archive of images, as `docker save` writes it, and prints their names. Resolves with 1 when that fails. */
export async function image({ archive, containerEngine: address }: ImageOptions): Promise<number> {
  try {
    for (const line of await loadImage(archive, { address, clock: systemClock })) process.stdout.write(`${line}\n`);
    return 0;
  } catch (error) {
    process.stderr.write(`galatea image: ${(error as Error).message}\n`);
    return 1;
  }
}
