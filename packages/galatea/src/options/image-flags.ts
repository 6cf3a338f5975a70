import { parsedFlag, UsageError } from "./flag.ts";
import { parsedEngineAddress } from "./engine-address.ts";
import type { OptionsOf, Parsed } from "./parse-flags.ts";

/** The flags of `galatea image`. */
export const imageFlags = {
  "container-engine": parsedFlag(
    { unit: "url", default: "unix:///var/run/docker.sock", about: "address of the container engine" },
    parsedEngineAddress,
  ),
};

/** The options of `galatea image load`. */
export interface ImageOptions {
  readonly archive: string;
  readonly containerEngine: string;
}

export function imageOptions({
  options: { containerEngine },
  positionals: [action, archive],
}: Parsed<OptionsOf<typeof imageFlags>>): ImageOptions {
  if (action !== "load" || archive === undefined) throw new UsageError("galatea image takes `load FILE`");
  return { archive, containerEngine };
}
