import { readFileSync } from "node:fs";
import type { Logger } from "@galatea/base";
import { landlockVersion } from "@galatea/base/system";

/** The privileges and kernel features that determine how tenants can be isolated on this machine. */
export interface IsolationCapabilities {
  readonly isRoot: boolean;
  /** Bit mask of the effective capabilities of the platform's process. */
  readonly capabilities: bigint;
  /** The ABI version of Landlock; 0 if the kernel does not support it. */
  readonly landlock: number;
}

/** The kinds of isolation between tenants, as containers report them. */
export const isolationKinds = ["users", "files", "view", "network", "signals", "memory", "processes", "disk"] as const;
type ConfinementKind = (typeof isolationKinds)[number];
export type IsolationGaps = Readonly<Partial<Record<ConfinementKind, string>>>;

/** Numbers of CAP_SETGID, CAP_SETUID and CAP_SETPCAP. A process needs them to change its user irrevocably. */
const userCapabilities = [6n, 7n, 8n];
const systemAdministration = 21n;

/** Returns the kinds of isolation that containers cannot apply on this machine, each with the reason. */
export function isolationGaps({ isRoot, capabilities, landlock }: IsolationCapabilities): IsolationGaps {
  const has = (capability: bigint) => isRoot && ((capabilities >> capability) & 1n) === 1n;
  const kernel = (kind: ConfinementKind, since: number, what: string) =>
    landlock >= since ? {} : { [kind]: `this kernel's Landlock (${landlock || "none"}) does not ${what}` };
  const noUsers = isRoot ? "root lacks CAP_SETUID, CAP_SETGID or CAP_SETPCAP" : "the platform does not run as root";
  const noRoot = "root with CAP_SYS_ADMIN is required to give each tenant its own root directory";
  return {
    ...(userCapabilities.every(has) ? {} : { users: noUsers }),
    ...kernel("files", 3, "restrict all accesses to files"),
    ...(has(systemAdministration) ? {} : { view: noRoot, disk: `by file only: ${noRoot}` }),
    ...kernel("network", 4, "restrict TCP"),
    ...kernel("signals", 6, "restrict signals and abstract sockets"),
  };
}

/** Reads the privileges of this process and the features of its kernel. */
export function readIsolationCapabilities(): IsolationCapabilities {
  const status = readFileSync("/proc/self/status", "utf8");
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0";
  return {
    isRoot: process.geteuid?.() === 0,
    capabilities: BigInt(`0x${effective}`),
    landlock: landlockVersion(),
  };
}

/** Logs a warning if isolation is incomplete. Call it at start, before any code of a tenant runs. */
export function logIsolationGaps(gaps: IsolationGaps, log: Logger): void {
  const missing = Object.entries(gaps).map(([kind, why]) => `${kind} (${why})`);
  if (missing.length === 0) return;
  log.warning(
    `models of different tenants are not fully isolated on this machine: ${missing.join("; ")}. Run code of tenants who do not ` +
      "trust each other as root, on Linux 6.12 or newer",
  );
}
