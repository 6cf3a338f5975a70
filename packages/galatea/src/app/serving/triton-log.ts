import { createLogger, systemClock, type LogFields, type LogLevel, type Logger } from "@galatea/base";
import { LineWriter, type LineTarget } from "./line-writer.ts";
import { fileTarget, outputTarget } from "./log-targets.ts";

export interface LogOptions {
  readonly verbose: boolean;
  readonly info: boolean;
  readonly warning: boolean;
  readonly error: boolean;
  readonly format: "default" | "ISO8601";
  /** "" writes INFO and verbose lines to `infoTo`, the others to stderr. */
  readonly file: string;
  readonly pid: number;
  readonly infoTo: "stdout" | "stderr";
}

const letters: Readonly<Record<LogLevel, string>> = { verbose: "I", info: "I", warning: "W", error: "E" };

/** Lines that wait for a reader that has stopped, or for a slow disk; beyond it they are dropped and counted. */
const waitingCharsMax = 1024 * 1024;

/** A log that may be slower than who writes it. */
export interface TritonLog extends Logger {
  /** Resolves when every line has been taken, or after `limitMs`; then false where a reader does not take them. */
  written(limitMs: number): Promise<boolean>;
  /** Before the process is ended otherwise than by an exit: what waits is written as far as it is taken at once. */
  writeNow(): void;
}

/**
 * Lines as tritonserver writes them: `I1121 04:45:42.123456 417 galatea] "message"`, UTC, the message JSON-escaped. Throws when the file
 * cannot be opened; what it does not take later goes to stderr. Nobody waits for a line to be written.
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
      const told = `${count} log lines were dropped: nobody took them in time`;
      return `${formatTritonLine(new Date(), "warning", told, undefined, options)}\n`;
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
