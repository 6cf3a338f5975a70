import { constants } from "node:os";

/** The end of a process. Exactly one of the two fields is not null. */
export interface ProcessEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

/**
 * Names of signals by number. Some numbers have a second name later in Node's list (SIGABRT is also SIGIOT). The first
 * one is the common name.
 */
const signalNames = new Map<number, string>(
  Object.entries(constants.signals)
    .toReversed()
    .map(([name, number]) => [number, name]),
);

/** Converts the wait status of an ended process, as `waitpid` returns it. */
export function parseWaitStatus(status: number): ProcessEnd {
  const signal = status & 0x7f;
  if (signal === 0) return { exitCode: (status >> 8) & 0xff, signal: null };
  return { exitCode: null, signal: signalNames.get(signal) ?? `signal ${signal}` };
}

/** Returns text such as "exit code 3" or "signal SIGSEGV". */
export function describeProcessEnd(end: ProcessEnd): string {
  return end.signal === null ? `exit code ${end.exitCode ?? 0}` : `signal ${end.signal}`;
}
