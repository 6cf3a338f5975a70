/** Named values that a log line prints after its message. They must not contain tensors or credentials. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export type LogLevel = "verbose" | "info" | "warning" | "error";

/** Writes log lines. The command decides where they are written; every other module receives a Logger. */
export interface Logger {
  verbose(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warning(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export type LogSink = (level: LogLevel, message: string, fields: LogFields | undefined) => void;

export function createLogger(sink: LogSink): Logger {
  return {
    verbose: (message, fields) => sink("verbose", message, fields),
    info: (message, fields) => sink("info", message, fields),
    warning: (message, fields) => sink("warning", message, fields),
    error: (message, fields) => sink("error", message, fields),
  };
}

/** A logger that discards its lines, for tests and tools. */
export const silentLogger: Logger = createLogger(() => {});
