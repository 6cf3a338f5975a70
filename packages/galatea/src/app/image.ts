import { loadImage } from "@galatea/hosting/container-host";
import { systemClock } from "@galatea/base";
import type { ImageOptions } from "../options/index.ts";

/**
 * Runs `galatea image load`, which loads an archive of images from `docker save` and prints the images' names. Resolves
 * with 1 if it fails.
 */
export async function image({ archive, containerEngine: address }: ImageOptions): Promise<number> {
  try {
    for (const line of await loadImage(archive, { address, clock: systemClock })) process.stdout.write(`${line}\n`);
    return 0;
  } catch (error) {
    process.stderr.write(`galatea image: ${(error as Error).message}\n`);
    return 1;
  }
}
