import { choiceFlag, integerFlag, listFlag, parsedFlag, parsedListFlag, portMax, UsageError } from "./flag.ts";
import type { Parsed } from "./parse-flags.ts";

const mebibyte = 2 ** 20;

/** The flags for the isolation of models. `serve` and `up` have them. */
export const workerFlags = {
  "worker-users": parsedFlag(
    {
      // Above the user ids that common systems assign to users, services and containers.
      default: "2000000000-2001048575",
      about:
        "user ids for workers of tenants, one for each tenant, when the server runs as root; `none`: the server's user",
    },
    parsedUsers,
  ),
  "worker-read": listFlag({ about: "path that every tenant may read" }),
  "worker-write": listFlag({
    about: "path that workers of every tenant may write, if file permissions allow it to their user",
  }),
  "worker-connect": parsedListFlag(
    {
      unit: "ports",
      default: "80,443",
      about: "TCP ports that tenants may connect to; `none`; or `any`, which also allows listening",
    },
    parsedPorts,
  ),
  "worker-memory-bytes": integerFlag({
    unit: "bytes",
    min: 64 * mebibyte,
    about:
      "memory limit of one tenant (default: all tenants share the memory budget); adds some milliseconds to each load",
  }),
  "worker-processes": integerFlag({ default: 1024, min: 16, about: "the most processes and threads of one tenant" }),
  "worker-scratch-bytes": integerFlag({
    unit: "bytes",
    default: 512 * mebibyte,
    min: mebibyte,
    about: "bytes that one tenant may keep in its scratch directory",
  }),
  "python-environments-bytes": integerFlag({
    unit: "bytes",
    default: 32 * 1024 * mebibyte,
    min: mebibyte,
    about:
      "disk for unpacked EXECUTION_ENV_PATH environments; as much for those of --python-packages, and for what scripts' requirements ask " +
      "for; those that no model uses go, the least recently used first",
  }),
  "onnx-run-deadline-secs": integerFlag({
    unit: "seconds",
    default: 600,
    min: 0,
    max: 86_400,
    about: "end an execution of an ONNX model after this long; 0 for never",
  }),
  "tree-run-deadline-secs": integerFlag({
    unit: "seconds",
    default: 600,
    min: 0,
    max: 86_400,
    about: "end an execution of a tree model (`fil`) after this long; 0 for never",
  }),
};

/** The flag for the isolation of workers. Only `serve` has it, because containers of `up` always isolate tenants. */
export const confinementFlag = choiceFlag(["tenants", "processes"], {
  about: "isolation of workers (default: tenants in a container that is configured by its environment, else processes)",
});

/**
 * Returns the worker flags of `up` as arguments of its containers. Always includes --worker-connect, so that the
 * platform can add ports to it.
 */
export function workerArguments({ given }: Parsed): readonly string[] {
  const connect = workerFlags["worker-connect"].default as string;
  const passed = new Map([["worker-connect", [connect]] as const, ...given]);
  return Object.keys(workerFlags).flatMap((name) => (passed.get(name) ?? []).map((text) => `--${name}=${text}`));
}

/** Parses a range of user ids. Ids below 1000 belong to the system, and 2^32 - 1 is not a valid id. */
function parsedUsers(text: string): { readonly first: number; readonly count: number } | null {
  if (text === "none") return null;
  const [, from, to] = /^(\d+)-(\d+)$/.exec(text) ?? [];
  const first = Number(from);
  const last = Number(to);
  if (from === undefined || first < 1000 || last < first || last >= 2 ** 32 - 1)
    throw new UsageError(`invalid value for --worker-users: '${text}' is neither FIRST-LAST nor none`);
  return { first, count: last - first + 1 };
}

/** Parses ports. Returns null for any port, which also allows listening. */
function parsedPorts(texts: readonly string[]): readonly number[] | null {
  const ports = texts.flatMap((text) => {
    if (text === "any" || text === "none") return [];
    const listed = text.split(",").map(Number);
    if (!/^[\d,]+$/.test(text) || listed.some((port) => port < 1 || port > portMax))
      throw new UsageError(`invalid value for --worker-connect: '${text}' is neither ports, any nor none`);
    return listed;
  });
  return texts.includes("any") ? null : ports;
}
