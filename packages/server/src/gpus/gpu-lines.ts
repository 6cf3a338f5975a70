import type { GpuReading } from "../native/index.ts";

/** What the process that reads GPUs prints, one JSON text a line. */
export type GpuLine =
  | { readonly kind: "reading"; readonly readings: readonly GpuReading[] }
  /** It cannot read them, and ends. */
  | { readonly kind: "failed"; readonly message: string };

/** Lines of many processes on many GPUs; more is no line of this program. */
export const gpuLineBytesMax = 2 ** 20;

export function printGpuLine(line: GpuLine): string {
  return `${JSON.stringify(line)}\n`;
}

/** null for what is no such line: words of the driver's own library. */
export function parseGpuLine(text: string): GpuLine | null {
  if (!text.startsWith('{"kind":')) return null;
  try {
    return JSON.parse(text) as GpuLine;
  } catch {
    return null;
  }
}
