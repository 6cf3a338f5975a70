import { createTritonLog, type TritonLog } from "./serving/triton-log.ts";

/** Opens the log of a platform or an agent on stderr. Stdout is reserved for the start summary. */
export function openProcessLog(): TritonLog {
  return createTritonLog({
    verbose: false,
    info: true,
    warning: true,
    error: true,
    format: "default",
    file: "",
    pid: process.pid,
    infoTo: "stderr",
  });
}
