import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { integerFlag, textFlag, UsageError } from "./flag.ts";

/** The text that describes the default of `--data` in help texts. */
export const dataDefault = "$GALATEA_DATA, else $XDG_DATA_HOME/galatea, else ~/.local/share/galatea";

/** The flags that `serve` and `up` have in common. */
export const sharedFlags = {
  "request-memory-bytes": integerFlag({
    unit: "bytes",
    min: 1024 * 1024,
    about:
      "memory for requests and responses in flight, tensors included; requests above it get 503 (default: a quarter of the memory of the cgroup or the machine)",
  }),
  python: textFlag({
    about: "Python interpreter of models (default: an environment that Galatea creates on first use)",
  }),
};

/**
 * Returns `--python` as an argument for containers. A path becomes absolute, because containers run in another
 * directory.
 */
export function pythonArguments({ python }: { readonly python: string | null }): readonly string[] {
  if (python === null) return [];
  if (!python.includes("/")) return [`--python=${python}`];
  const path = resolve(python);
  if (!existsSync(path)) throw new UsageError(`invalid value for --python: '${path}' does not exist`);
  return [`--python=${path}`];
}
