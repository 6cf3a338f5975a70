const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };
/** Maximum delay of Node's timers, about 24 days. */
const timerMsMax = 2 ** 31 - 1;

/** Parses the header `grpc-timeout` (at most eight digits and a unit) to milliseconds; null when absent or invalid. */
export function parseGrpcTimeout(header: string | undefined): number | null {
  if (header === undefined) return null;
  const match = /^(\d{1,8})([HMSmun])$/.exec(header);
  if (match === null) return null;
  return Math.min(Number(match[1]) * unitMs[match[2]!]!, timerMsMax);
}
