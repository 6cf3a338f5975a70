import {
  choiceFlag,
  integerFlag,
  listFlag,
  parsedFlag,
  parsedListFlag,
  portMax,
  switchFlag,
  UsageError,
} from "./flag.ts";
import type { Parsed } from "./parse-flags.ts";

const mebibyte = 2 ** 20;

/** How models are kept apart; `serve` and `up` take the same. */
export const workerFlags = {
  "worker-users": parsedFlag(
    {
      // Beyond what is given to people, services and containers on common systems.
      default: "2000000000-2001048575",
      about:
        "users that workers of tenants run as, one for each tenant, where the server is root; `none`: the server's",
    },
    parsedUsers,
  ),
  "worker-read": listFlag({ about: "path that every tenant may read" }),
  "worker-write": listFlag({ about: "path that every tenant may write, where its user may" }),
  "worker-connect": parsedListFlag(
    {
      unit: "ports",
      default: "80,443",
      about: "TCP ports that tenants may connect to; none, or any, which allows listening too",
    },
    parsedPorts,
  ),
  "worker-memory-bytes": integerFlag({
    unit: "bytes",
    min: 64 * mebibyte,
    about:
      "memory of one tenant (default: all tenants together have the memory budget); costs some milliseconds a load",
  }),
  "worker-processes": integerFlag({ default: 1024, min: 16, about: "processes and threads of one tenant" }),
  "worker-scratch-bytes": integerFlag({
    unit: "bytes",
    default: 512 * mebibyte,
    min: mebibyte,
    about: "what one tenant may write to its scratch directory",
  }),
  "python-environments-bytes": integerFlag({
    unit: "bytes",
    default: 32 * 1024 * mebibyte,
    min: mebibyte,
    about:
      "disk for unpacked EXECUTION_ENV_PATH environments; as much for those of --python-packages, and for what scripts' requirements ask " +
      "for; those that no model uses go, the least recently used first",
  }),
  "onnx-in-process": switchFlag("run ONNX models in the server's own process, which a faulty one then ends"),
  "onnx-run-deadline-secs": integerFlag({
    unit: "seconds",
    default: 600,
    min: 0,
    max: 86_400,
    about: "end a run of an ONNX model after this long; 0 for never",
  }),
  "tree-run-deadline-secs": integerFlag({
    unit: "seconds",
    default: 600,
    min: 0,
    max: 86_400,
    about: "end a run of a model of trees (`fil`) after this long; 0 for never",
  }),
};

/** Whether workers are tenants'; a flag of `serve` alone: the containers of `up` hold tenants always. */
export const confinementFlag = choiceFlag(["tenants", "processes"], {
  about:
    "what workers are kept apart as (default: tenants in a container that its environment configures, else processes)",
});

/** Returns the worker flags of `up` as words for the command line of its containers, to which more ports can be added. */
export function workerArguments({ given }: Parsed): readonly string[] {
  const connect = workerFlags["worker-connect"].default as string;
  const passed = new Map([["worker-connect", [connect]] as const, ...given]);
  return Object.entries(workerFlags).flatMap(([name, { placeholder }]) =>
    (passed.get(name) ?? []).map((text) => (placeholder === null ? `--${name}` : `--${name}=${text}`)),
  );
}

/** Users 0 to 999 belong to the system, and the last is no user at all. */
function parsedUsers(text: string): { readonly first: number; readonly count: number } | null {
  if (text === "none") return null;
  const [, from, to] = /^(\d+)-(\d+)$/.exec(text) ?? [];
  const first = Number(from);
  const last = Number(to);
  if (from === undefined || first < 1000 || last < first || last >= 2 ** 32 - 1)
    throw new UsageError(`invalid value for --worker-users: '${text}' is neither FIRST-LAST nor none`);
  return { first, count: last - first + 1 };
}

/** Null for any port, and listening too. */
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
