import { readFileSync } from "node:fs";
import type { Logger } from "@galatea/base";
import { landlockVersion } from "@galatea/base/system";

/** What decides on this machine how tenants can be kept apart. */
export interface ConfinementMeans {
  readonly isRoot: boolean;
  /** The effective capabilities of the platform, by their bits. */
  readonly capabilities: bigint;
  /** The ABI of Landlock; 0: there is none. */
  readonly landlock: number;
}

/** What keeps tenants apart, as containers report it. */
export const confinementKinds = [
  "users",
  "files",
  "view",
  "network",
  "signals",
  "memory",
  "processes",
  "disk",
] as const;
type ConfinementKind = (typeof confinementKinds)[number];
export type ConfinementGaps = Readonly<Partial<Record<ConfinementKind, string>>>;

/** CAP_SETGID, CAP_SETUID and CAP_SETPCAP: to become another user for good. */
const userCapabilities = [6n, 7n, 8n];
const systemAdministration = 21n;

/** What the containers of this machine cannot apply, and why; empty where they can apply everything. */
export function confinementGaps({ isRoot, capabilities, landlock }: ConfinementMeans): ConfinementGaps {
  const has = (capability: bigint) => isRoot && ((capabilities >> capability) & 1n) === 1n;
  const kernel = (kind: ConfinementKind, since: number, what: string) =>
    landlock >= since ? {} : { [kind]: `this kernel's Landlock (${landlock || "none"}) does not ${what}` };
  const noUsers = isRoot ? "root lacks CAP_SETUID, CAP_SETGID or CAP_SETPCAP" : "the platform does not run as root";
  const noRoot = "it takes root with CAP_SYS_ADMIN to give tenants root directories of their own";
  return {
    ...(userCapabilities.every(has) ? {} : { users: noUsers }),
    ...kernel("files", 3, "hold all accesses to files"),
    ...(has(systemAdministration) ? {} : { view: noRoot, disk: `by file only: ${noRoot}` }),
    ...kernel("network", 4, "hold TCP"),
    ...kernel("signals", 6, "hold signals and abstract sockets"),
  };
}

/** Reads what this process has and what its kernel allows. */
export function confinementMeans(): ConfinementMeans {
  const status = readFileSync("/proc/self/status", "utf8");
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0";
  return {
    isRoot: process.geteuid?.() === 0,
    capabilities: BigInt(`0x${effective}`),
    landlock: landlockVersion(),
  };
}

/** Logs what tenants cannot be confined in, before any of them runs. */
export function warnOfGaps(gaps: ConfinementGaps, log: Logger): void {
  const missing = Object.entries(gaps).map(([kind, why]) => `${kind} (${why})`);
  if (missing.length === 0) return;
  log.warning(
    `models of different tenants are not kept apart in full on this machine: ${missing.join("; ")}. Run code of tenants who do not ` +
      "trust each other as root, on Linux 6.12 or newer",
  );
}
