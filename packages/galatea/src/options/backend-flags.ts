import { sharedFlags, dataDefault } from "./shared-flags.ts";
import { integerFlag, parsedListFlag, textFlag, UsageError } from "./flag.ts";
import type { OptionsOf } from "./parse-flags.ts";
import { parsedPackages } from "./python-packages.ts";
import { confinementFlag, workerFlags } from "./worker-flags.ts";

/** What backends run models with: flags of `serve`, and of `validate`, which checks models as `serve` would load them. */
export const backendFlags = {
  "backend-config": parsedListFlag({ about: "<backend>,<key>=<value> or <key>=<value>" }, parsedBackendConfig),
  "backend-directory": textFlag({ about: "python-based backends: <directory>/<backend>/model.py" }),
  "memory-budget-bytes": integerFlag({ unit: "bytes", min: 1, about: "refuse to load models beyond this much memory" }),
  python: sharedFlags.python,
  "python-packages": parsedListFlag(
    {
      about:
        "packages for models beside numpy and tokenizers, separated by spaces, as `scipy==1.16.2`; installed once as wheels, from " +
        "where pip's variables say (PIP_FIND_LINKS and PIP_NO_INDEX for a directory of wheels)",
      variable: "GALATEA_PYTHON_PACKAGES",
    },
    parsedPackages,
  ),
  "python-threads": integerFlag({
    min: 1,
    about:
      "threads of each Python model process's numerical libraries, where OMP_NUM_THREADS and the like do not say (default: numpy 1, others all)",
  }),
  "python-instances-on-demand": integerFlag({
    default: 0,
    min: 0,
    max: 1024,
    about:
      "the most instances of a Python model; those beyond its configuration are started while all others execute, if memory allows (0: none beyond it)",
  }),
  "python-preimport": parsedListFlag(
    { about: "modules, after their first use found imported by models whatever variables those set: quicker loads" },
    (texts) => texts.flatMap((names) => names.split(",")),
  ),
  data: textFlag({ about: `directory for environments and caches (default: ${dataDefault})` }),
  "worker-confinement": confinementFlag,
  ...workerFlags,
};

export type BackendOptions = OptionsOf<typeof backendFlags>;

/** `<backend>,<key>=<value>` or the global `<key>=<value>`; "" is the global backend. */
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
