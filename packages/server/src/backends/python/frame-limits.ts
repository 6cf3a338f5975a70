/**
 * Limits of a frame from a worker or a zygote. A process that exceeds one is ended: a model's code can send anything, and decoding it
 * takes the time of all models.
 */
export const frameLimits = {
  /** LOG and FAILED frames, which the worker truncates far below this. */
  textFrameBytesMax: 2 * 1024 * 1024,
  /** Other frames with JSON: a completed configuration, names of modules. */
  jsonBytesMax: 4 * 1024 * 1024,
  jsonDepthMax: 64,
  /** Error text in a RESULT. */
  errorBytesMax: 1024 * 1024,
  /** Members of the parameters of all responses in one RESULT. */
  parameterMembersMax: 100_000,
  /** Python itself prints no longer integers. */
  integerDigitsMax: 4300,
  /** Outputs of all responses in one RESULT. */
  tensorsMax: 2 ** 17,
  /** Ids in one RELEASED or RESULT. */
  releasedMax: 2 ** 20,
  /** Duration of a phase of an execution: eleven days. */
  phaseNsMax: 1e15,
  /** Requests for space by one execution. */
  asksMax: 16,
  /** Responses of a decoupled model to one request that its client has not consumed; the model then waits before it sends another. */
  answersMax: 16,
  /**
   * Concurrent calls of one worker to other models, including loads and unloads. The worker uses up to half of it for calls that wait for
   * a response, and the other half for streams with unread responses.
   */
  callsMax: 512,
  /** Unread frames for a worker that continues to request metrics. */
  unreadFramesMax: 1024,
  /** Labels of one custom metric of a model. */
  metricLabelsMax: 256,
  /** Names of inputs, outputs or files in one call. */
  callNamesMax: 4096,
  /** Bytes that are searched for elements of BYTES outputs in one RESULT, in addition to four times the size of their blocks. */
  elementBytesMax: 64 * 1024 * 1024,
  /** Length of the name of a module that a model imported, and number of these modules. */
  moduleNameLengthMax: 256,
  moduleNamesMax: 10_000,
  /** Lines of LOG frames a second; lines over the limit are counted, not shown. */
  logLinesPerSecondMax: 1000,
  /** Lines a second about failed executions of one model version. */
  failureLinesPerSecondMax: 10,
} as const;
