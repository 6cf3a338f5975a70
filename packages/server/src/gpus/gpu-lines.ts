import type { GpuReading } from "../native/index.ts";

/** A line that the process that reads GPUs prints: one JSON text. */
export type GpuLine =
  | { readonly kind: "reading"; readonly readings: readonly GpuReading[] }
  /** The GPUs cannot be read; the process ends after this line. */
  | { readonly kind: "failed"; readonly message: string };

/** Maximum length of a line in bytes. It is sufficient for many processes on many GPUs; a longer line is not output of this program. */
export const gpuLineBytesMax = 2 ** 20;

export function printGpuLine(line: GpuLine): string {
  return `${JSON.stringify(line)}\n`;
}

/** Parses a line of the process's output. Returns null for other lines, such as messages of the driver's library. */
export function parseGpuLine(text: string): GpuLine | null {
  if (!text.startsWith('{"kind":')) return null;
  try {
    return JSON.parse(text) as GpuLine;
  } catch {
    return null;
  }
}
