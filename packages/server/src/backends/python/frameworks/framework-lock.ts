import { readFile } from "node:fs/promises";

interface Wheel {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

interface Pin {
  readonly name: string;
  readonly version: string;
  /** For which interpreters and machines it is, as pip reads it. */
  readonly marker: string;
  readonly wheels: readonly Wheel[];
}

/** What is installed with one call of an installer. */
export interface PinGroup {
  readonly pins: readonly Pin[];
  /** What is downloaded for it, about. */
  readonly bytes: number;
}

const groupBytesMax = 256 * 2 ** 20;
const machines: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

/** The pins of a lock, those behind each other in one group as long as it stays small. `arch` is this machine's, in Node's words. */
export async function readPins(lock: URL, arch: string): Promise<readonly PinGroup[]> {
  const { pins } = JSON.parse(await readFile(lock, "utf8")) as { pins: readonly Pin[] };
  const groups: { pins: Pin[]; bytes: number }[] = [];
  for (const pin of pins) {
    const bytes = bytesOf(pin, machines[arch] ?? arch);
    const last = groups.at(-1);
    if (last !== undefined && last.bytes + bytes <= groupBytesMax) {
      last.pins.push(pin);
      last.bytes += bytes;
    } else {
      groups.push({ pins: [pin], bytes });
    }
  }
  return groups;
}

/** The largest of its wheels that this machine may take. */
function bytesOf({ wheels }: Pin, machine: string): number {
  const own = wheels.filter(({ file }) => file.includes(machine) || file.endsWith("-any.whl"));
  return own.reduce((most, { bytes }) => Math.max(most, bytes), 0);
}

/** A line of a requirements file: this version, and no other file than one of the lock's. */
export function lockedLine({ name, version, marker, wheels }: Pin): string {
  return [`${name}==${version} ; ${marker}`, ...wheels.map(({ sha256 }) => `--hash=sha256:${sha256}`)].join(" ");
}

/** A line of a constraints file: this version, built by whomever. */
export function constraintLine({ name, version, marker }: Pin): string {
  return `${name}==${version} ; ${marker}`;
}
