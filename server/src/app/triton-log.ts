import { appendFileSync } from "node:fs";
import { createLogger, type LogFields, type LogLevel, type Logger } from "../base/index.ts";

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

/**
 * Lines as tritonserver writes them: `I1121 04:45:42.123456 417 galatea] "message"`, UTC, the message JSON-escaped. Throws when the file
 * cannot be opened; what it does not take later goes to stderr.
 */
export function createTritonLog(options: LogOptions): Logger {
  const shown: Readonly<Record<LogLevel, boolean>> = {
    verbose: options.verbose,
    info: options.info,
    warning: options.warning,
    error: options.error,
  };
  if (options.file !== "") appendFileSync(options.file, "");
  return createLogger((level, message, fields) => {
    if (!shown[level]) return;
    const line = `${formatLogLine(new Date(), level, message, fields, options)}\n`;
    if (options.file !== "") appendTo(options.file, line);
    else if ((level === "info" || level === "verbose") && options.infoTo === "stdout") process.stdout.write(line);
    else process.stderr.write(line);
  });
}

function appendTo(file: string, line: string): void {
  try {
    appendFileSync(file, line);
  } catch (error) {
    process.stderr.write(`${line.trimEnd()} (not in the log file: ${(error as Error).message})\n`);
  }
}

export function formatLogLine(
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
