import { createLogger, systemClock, type LogFields, type LogLevel, type Logger } from "@galatea/base";
import { LineWriter, type LineTarget } from "./line-writer.ts";
import { fileTarget, outputTarget } from "./log-targets.ts";

export interface LogOptions {
  readonly verbose: boolean;
  readonly info: boolean;
  readonly warning: boolean;
  readonly error: boolean;
  readonly format: "default" | "ISO8601";
  /** The log file; "" writes INFO and verbose lines to `infoTo`, and others to stderr. */
  readonly file: string;
  readonly pid: number;
  readonly infoTo: "stdout" | "stderr";
}

const letters: Readonly<Record<LogLevel, string>> = { verbose: "I", info: "I", warning: "W", error: "E" };

/**
 * Maximum length of lines that wait for a slow disk or a reader that has stopped reading. Further lines are dropped and
 * counted.
 */
const waitingCharsMax = 1024 * 1024;

/** A log that never blocks its callers. */
export interface TritonLog extends Logger {
  /** Resolves with true when every line is written, or with false after `limitMs`. */
  written(limitMs: number): Promise<boolean>;
  /** Writes the waiting lines without blocking. Call this before the process is killed or replaced. */
  writeNow(): void;
}

/**
 * Creates a log in tritonserver's format: `I1121 04:45:42.123456 417 galatea] "message"`, in UTC, with the message
 * escaped as in JSON. Throws if the file cannot be opened. Lines that cannot be written later go to stderr. Callers are
 * never blocked.
 */
export function createTritonLog(options: LogOptions): TritonLog {
  const shown: Readonly<Record<LogLevel, boolean>> = {
    verbose: options.verbose,
    info: options.info,
    warning: options.warning,
    error: options.error,
  };
  const open = (target: LineTarget) => {
    const droppedLine = (count: number) => {
      const reported = `${count} log lines were dropped: the reader is too slow`;
      return `${formatTritonLine(new Date(), "warning", reported, undefined, options)}\n`;
    };
    const writer = new LineWriter(target, { waitingCharsMax, droppedLine });
    process.once("exit", () => writer.writeNow());
    return writer;
  };
  const file = options.file === "" ? null : open(fileTarget(options.file));
  const problems = file ?? open(outputTarget(process.stderr));
  const infos = file ?? (options.infoTo === "stderr" ? problems : open(outputTarget(process.stdout)));
  const logger = createLogger((level, message, fields) => {
    if (!shown[level]) return;
    const line = `${formatTritonLine(new Date(), level, message, fields, options)}\n`;
    (level === "info" || level === "verbose" ? infos : problems).write(line);
  });
  const written = async (limitMs: number) => {
    const late = new Promise<false>((resolve) => void systemClock.timer(limitMs, () => resolve(false)));
    const all = Promise.all([infos.written(), problems.written()]).then(() => true);
    return await Promise.race([all, late]);
  };
  const writeNow = () => {
    for (const writer of new Set([infos, problems])) writer.writeNow();
  };
  return { ...logger, written, writeNow };
}

export function formatTritonLine(
  now: Date,
  level: LogLevel,
  message: string,
  fields: LogFields | undefined,
  options: { readonly format: "default" | "ISO8601"; readonly pid: number },
): string {
  const extra =
    fields === undefined
      ? ""
      : Object.entries(fields)
          .map(([key, value]) => ` ${key}=${String(value)}`)
          .join("");
  const text = `${options.pid} galatea] ${JSON.stringify(message + extra)}`;
  const iso = now.toISOString();
  if (options.format === "ISO8601") return `${iso.slice(0, 19)}Z ${letters[level]} ${text}`;
  return `${letters[level]}${iso.slice(5, 7)}${iso.slice(8, 10)} ${iso.slice(11, 23)}000 ${text}`;
}
