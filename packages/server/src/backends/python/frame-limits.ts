/**
 * What a frame from a worker or a zygote may hold. Whoever sends more is ended: the code of a model can send what it likes, and
 * reading it takes the time of all models.
 */
export const frameLimits = {
  /** Of LOG and FAILED, which the worker cuts far below it. */
  textFrameBytesMax: 2 * 1024 * 1024,
  /** Of the other frames with JSON: a completed configuration, names of modules. */
  jsonBytesMax: 4 * 1024 * 1024,
  jsonDepthMax: 64,
  /** Of an error's text in RESULT. */
  errorBytesMax: 1024 * 1024,
  /** Members of the parameters of all responses in one RESULT. */
  parameterMembersMax: 100_000,
  /** Python itself prints no longer integers. */
  integerDigitsMax: 4300,
  /** Outputs of all responses in one RESULT. */
  tensorsMax: 2 ** 17,
  /** Ids in one RELEASED or RESULT. */
  releasedMax: 2 ** 20,
  /** A phase of an execution takes no longer: eleven days. */
  phaseNsMax: 1e15,
  /** How often one execution may ask for space. */
  asksMax: 16,
  /** Answers of a decoupled model to one request that its client has not taken; the model waits before it makes another. */
  answersMax: 16,
  /**
   * Calls to other models that one worker may have under way, its loads and unloads among them. The worker keeps within half of it for
   * those that somebody waits for, and within the other for streams whose answers are still to be read.
   */
  callsMax: 512,
  /** Frames before the worker that it does not read, while it asks for more answers about its metrics. */
  unreadFramesMax: 1024,
  /** Labels of one metric of a model's. */
  metricLabelsMax: 256,
  /** Names of inputs, outputs or files in one call. */
  callNamesMax: 4096,
  /** What is looked through for elements of BYTES outputs in one RESULT, beyond four times the blocks that they lie in. */
  elementBytesMax: 64 * 1024 * 1024,
  /** Of one module that a model imported, and how many of them. */
  moduleNameLengthMax: 256,
  moduleNamesMax: 10_000,
  /** Lines of LOG frames a second; those beyond are counted, not shown. */
  logLinesPerSecondMax: 1000,
  /** Lines a second about failed executions of one model version. */
  failureLinesPerSecondMax: 10,
} as const;
