import { readFile } from "node:fs/promises";

interface Wheel {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

interface Pin {
  readonly name: string;
  readonly version: string;
  /** Environment marker in pip's format: a condition on the interpreter and the machine for which the package is installed. */
  readonly marker: string;
  readonly wheels: readonly Wheel[];
}

/** Packages that are installed by one command. */
export interface PinGroup {
  readonly pins: readonly Pin[];
  /** Approximate size of the download in bytes. */
  readonly bytes: number;
}

const groupBytesMax = 256 * 2 ** 20;
const machines: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

/** Returns the pins of a lock file in groups of consecutive packages. `arch` is this machine's architecture as in Node. */
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

/** Returns the size of the pin's largest wheel for this machine. */
function bytesOf({ wheels }: Pin, machine: string): number {
  const own = wheels.filter(({ file }) => file.includes(machine) || file.endsWith("-any.whl"));
  return own.reduce((most, { bytes }) => Math.max(most, bytes), 0);
}

/** Returns a line for a requirements file that allows only this version and the files in the lock file. */
export function lockedLine({ name, version, marker, wheels }: Pin): string {
  return [`${name}==${version} ; ${marker}`, ...wheels.map(({ sha256 }) => `--hash=sha256:${sha256}`)].join(" ");
}

/** Returns a line for a constraints file that allows only this version, from any build. */
export function constraintLine({ name, version, marker }: Pin): string {
  return `${name}==${version} ; ${marker}`;
}
