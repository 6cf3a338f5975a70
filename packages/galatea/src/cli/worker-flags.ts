import { portMax, UsageError, type Flag, type ParsedFlags } from "./flags.ts";
import type { WorkerSettings } from "../app/index.ts";

const mebibyte = 2 ** 20;
/** Beyond what is given to people, services and containers on common systems. */
const usersDefault = "2000000000-2001048575";
const connectDefault = "80,443";

/** How models are kept apart; `serve` and `up` take the same. */
export const workerFlags: readonly Flag[] = [
  {
    name: "worker-users",
    kind: "string",
    default: usersDefault,
    about: "users that workers of tenants run as, one for each tenant, where the server is root; `none`: the server's",
  },
  { name: "worker-read", kind: "string", repeatable: true, about: "path that every tenant may read" },
  {
    name: "worker-write",
    kind: "string",
    repeatable: true,
    about: "path that every tenant may write, where its user may",
  },
  {
    name: "worker-connect",
    kind: "string",
    repeatable: true,
    about: `TCP ports that tenants may connect to; none, or any, which allows listening too (default: ${connectDefault})`,
  },
  {
    name: "worker-memory-bytes",
    kind: "integer",
    min: 64 * mebibyte,
    about:
      "memory of one tenant (default: all tenants together have the memory budget); costs some milliseconds a load",
  },
  { name: "worker-processes", kind: "integer", default: 1024, min: 16, about: "processes and threads of one tenant" },
  {
    name: "worker-scratch-bytes",
    kind: "integer",
    default: 512 * mebibyte,
    min: mebibyte,
    about: "what one tenant may write to its scratch directory",
  },
  {
    name: "python-environments-bytes",
    kind: "integer",
    default: 32 * 1024 * mebibyte,
    min: mebibyte,
    about:
      "disk for unpacked EXECUTION_ENV_PATH environments; as much for those of --python-packages, and for what scripts' requirements ask " +
      "for; those that no model uses go, the least recently used first",
  },
  {
    name: "onnx-in-process",
    kind: "switch",
    about: "run ONNX models in the server's own process, which a faulty one then ends",
  },
  {
    name: "onnx-run-deadline-secs",
    kind: "integer",
    default: 600,
    min: 0,
    max: 86_400,
    about: "end a run of an ONNX model after this long; 0 for never",
  },
  {
    name: "tree-run-deadline-secs",
    kind: "integer",
    default: 600,
    min: 0,
    max: 86_400,
    about: "end a run of a model of trees (`fil`) after this long; 0 for never",
  },
];

/** Which workers are tenants'; a flag of `serve` alone: the containers of `up` hold tenants always. */
export const confinementFlag: Flag = {
  name: "worker-confinement",
  kind: "string",
  about: "`tenants` or `processes` (default: tenants in a container that its environment configures, else processes)",
};

export function workerOptions({ values, lists }: ParsedFlags): WorkerSettings {
  const confinement = values.get("worker-confinement") ?? null;
  if (confinement !== null && confinement !== "tenants" && confinement !== "processes")
    throw new UsageError(`invalid value for --worker-confinement: '${confinement}' is neither tenants nor processes`);
  return {
    confinement,
    users: parsedUsers(values.get("worker-users") as string),
    readPaths: lists.get("worker-read") ?? [],
    writePaths: lists.get("worker-write") ?? [],
    tcpPorts: parsedPorts(lists.get("worker-connect") ?? [connectDefault]),
    memoryBytesMax: (values.get("worker-memory-bytes") as number | undefined) ?? null,
    processesMax: values.get("worker-processes") as number,
    scratchBytesMax: values.get("worker-scratch-bytes") as number,
    environmentBytesMax: values.get("python-environments-bytes") as number,
  };
}

/** The same flags as they stood on the command line of `up`, for that of its containers; to be continued with more ports. */
export function workerArguments(parsed: ParsedFlags): readonly string[] {
  const { values, lists, given } = parsed;
  const own = workerFlags.filter(({ name }) => given.has(name));
  // A container would be too late to say what is wrong with them.
  if (own.length > 0) workerOptions(parsed);
  const words = own.flatMap(({ name, kind }) =>
    kind === "switch"
      ? [`--${name}`]
      : (lists.get(name) ?? [values.get(name)]).map((value) => `--${name}=${String(value)}`),
  );
  return given.has("worker-connect") ? words : [...words, `--worker-connect=${connectDefault}`];
}

/** Users 0 to 999 belong to the system, and the last is no user at all. */
function parsedUsers(text: string): WorkerSettings["users"] {
  if (text === "none") return null;
  const [, from, to] = /^(\d+)-(\d+)$/.exec(text) ?? [];
  const first = Number(from);
  const last = Number(to);
  if (from === undefined || first < 1000 || last < first || last >= 2 ** 32 - 1)
    throw new UsageError(`invalid value for --worker-users: '${text}' is neither FIRST-LAST nor none`);
  return { first, count: last - first + 1 };
}

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
