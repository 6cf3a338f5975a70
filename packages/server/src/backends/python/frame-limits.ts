/**
 * Limits of frames from a worker or a zygote. A process that exceeds a limit is killed, because model code can send any bytes, and decoding
 * them would delay all other models.
 */
export const frameLimits = {
  /** Maximum size in bytes of LOG and FAILED frames. Workers truncate their texts far below this limit. */
  textFrameBytesMax: 2 * 1024 * 1024,
  /** Maximum size in bytes of other frames with JSON, such as a completed configuration or names of modules. */
  jsonBytesMax: 4 * 1024 * 1024,
  jsonDepthMax: 64,
  /** Maximum length in bytes of an error text in a RESULT frame. */
  errorBytesMax: 1024 * 1024,
  /** Maximum number of parameters of all responses in one RESULT frame. */
  parameterMembersMax: 100_000,
  /** Maximum number of digits of an integer, as in Python's own conversion. */
  integerDigitsMax: 4300,
  /** Maximum number of outputs of all responses in one RESULT frame. */
  tensorsMax: 2 ** 17,
  /** Maximum number of ids in one RELEASED or RESULT frame. */
  releasedMax: 2 ** 20,
  /** Maximum duration of a phase of an execution, in nanoseconds: eleven days. */
  phaseNsMax: 1e15,
  /** Maximum number of requests for output memory by one execution. */
  spaceRequestsMax: 16,
  /** Maximum number of responses to one request of a decoupled model that the client has not read. At the limit, the model waits. */
  unreadResponsesMax: 16,
  /**
   * Maximum number of concurrent calls of one worker to other models, including loads and unloads. Workers use up to half of this number
   * for calls that wait for a response, and the other half for streams with unread responses.
   */
  callsMax: 512,
  /** Maximum number of frames that a worker may leave unread while it requests more metrics. */
  unreadFramesMax: 1024,
  /** Maximum number of labels of one custom metric. */
  metricLabelsMax: 256,
  /** Maximum number of names of inputs, outputs or files in one call. */
  callNamesMax: 4096,
  /**
   * Maximum number of bytes that are scanned for elements of BYTES outputs in one RESULT frame, in addition to four times the size of the
   * outputs' blocks.
   */
  elementBytesMax: 64 * 1024 * 1024,
  /** Maximum length of the name of a module that a model imported, and maximum number of such modules. */
  moduleNameLengthMax: 256,
  moduleNamesMax: 10_000,
  /** Maximum number of log lines per second; further lines are counted but not shown. */
  logLinesPerSecondMax: 1000,
  /** Maximum number of log lines per second about failed executions of one model version. */
  failureLinesPerSecondMax: 10,
} as const;
