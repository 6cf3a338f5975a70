import { constants } from "node:os";

/** How a process ended: exactly one of the two is not null. */
export interface ProcessEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

/** Some numbers have a second, older name further down the list (SIGABRT is SIGIOT): the first is the one that people know. */
const signalNames = new Map<number, string>(
  Object.entries(constants.signals)
    .toReversed()
    .map(([name, number]) => [number, name]),
);

/** A kernel wait status as a ProcessEnd. */
export function endOfWaitStatus(status: number): ProcessEnd {
  const signal = status & 0x7f;
  if (signal === 0) return { exitCode: (status >> 8) & 0xff, signal: null };
  return { exitCode: null, signal: signalNames.get(signal) ?? `signal ${signal}` };
}

/** "exit code 3" or "signal SIGSEGV". */
export function describeEnd(end: ProcessEnd): string {
  return end.signal === null ? `exit code ${end.exitCode ?? 0}` : `signal ${end.signal}`;
}
