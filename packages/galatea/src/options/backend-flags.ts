import { sharedFlags, dataDefault } from "./shared-flags.ts";
import { integerFlag, parsedListFlag, textFlag, UsageError } from "./flag.ts";
import type { OptionsOf } from "./parse-flags.ts";
import { parsedPackages } from "./python-packages.ts";
import { confinementFlag, workerFlags } from "./worker-flags.ts";

/**
 * The flags of backends. `serve` and `validate` have them, because `validate` checks models as `serve` would load them.
 */
export const backendFlags = {
  "backend-config": parsedListFlag({ about: "<backend>,<key>=<value> or <key>=<value>" }, parsedBackendConfig),
  "backend-directory": textFlag({ about: "python-based backends: <directory>/<backend>/model.py" }),
  "memory-budget-bytes": integerFlag({ unit: "bytes", min: 1, about: "reject loads above this much memory of models" }),
  python: sharedFlags.python,
  "python-packages": parsedListFlag(
    {
      about:
        "packages for models in addition to numpy and tokenizers, separated by spaces, as `scipy==1.16.2`; installed once as wheels, from " +
        "the index that pip's environment variables select (PIP_FIND_LINKS and PIP_NO_INDEX for a directory of wheels)",
      variable: "GALATEA_PYTHON_PACKAGES",
    },
    parsedPackages,
  ),
  "python-threads": integerFlag({
    min: 1,
    about:
      "threads of the numerical libraries in each Python model process, unless OMP_NUM_THREADS or a similar variable is set (default: numpy 1, others all)",
  }),
  "python-instances-on-demand": integerFlag({
    default: 0,
    min: 0,
    max: 1024,
    about:
      "the most instances of a Python model; instances above its configuration are started while all others are busy, if memory allows (0: none)",
  }),
  "python-preimport": parsedListFlag(
    { about: "modules to import before models load, even for models that set environment variables: faster loads" },
    (texts) => texts.flatMap((names) => names.split(",")),
  ),
  data: textFlag({ about: `directory for environments and caches (default: ${dataDefault})` }),
  "worker-confinement": confinementFlag,
  ...workerFlags,
};

export type BackendOptions = OptionsOf<typeof backendFlags>;

/**
 * Parses `<backend>,<key>=<value>`, or `<key>=<value>` for all backends. The backend of a setting for all backends is
 * "".
 */
function parsedBackendConfig(texts: readonly string[]) {
  return texts.map((text) => {
    const comma = text.indexOf(",");
    const setting = text.slice(comma + 1);
    const equals = setting.indexOf("=");
    if (equals <= 0)
      throw new UsageError(
        `--backend-config option format is '<backend name>,<setting>=<value>' or '<setting>=<value>'. Got ${text}`,
      );
    return {
      backend: comma === -1 ? "" : text.slice(0, comma),
      key: setting.slice(0, equals),
      value: setting.slice(equals + 1),
    };
  });
}
