/** Words every folder may use: errors, time, logs, task groups, whole bodies. Nothing here knows models, AWS or HTTP. */
export { AwsError, InferenceError, assert, inferenceCodeText, inferenceCodes, type InferenceCode } from "./errors.ts";
export { delay, systemClock, type Clock } from "./clock.ts";
export { createLogger, silentLogger, type LogFields, type LogLevel, type LogSink, type Logger } from "./log.ts";
export { readWhole } from "./read-whole.ts";
export { TaskGroup } from "./task-group.ts";
