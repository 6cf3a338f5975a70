/** An error that a request of the soak may get, with its cause and its HTTP and gRPC statuses. */
interface DocumentedError {
  readonly cause: string;
  readonly text: RegExp;
  readonly http: number;
  readonly grpc: number;
}

const documented: readonly DocumentedError[] = [
  {
    cause: "its worker was killed",
    text: /^Stub process '\w+' is not healthy\. \(signal SIGKILL\)$/,
    http: 500,
    grpc: 13,
  },
  {
    // These errors occur until the next start of the worker, whose delay grows with each failure.
    cause: "its worker was killed while it was started again",
    text: /^Stub process '\w+' is not healthy\. \(restart failed: (cannot fork a Python worker: (the worker died before it began|it exited before it started)|Stub process '\w+' is not healthy\. \(signal SIGKILL\))\)$/,
    http: 500,
    grpc: 13,
  },
  {
    cause: "its model was unloaded",
    text: /^Request for unknown model: 'coming' (is not found|has no available versions)$/,
    http: 404,
    grpc: 5,
  },
  {
    cause: "its file was replaced after its runner was killed",
    text: /^the files of model 'onnx' have changed since it was loaded: load it again$/,
    http: 503,
    grpc: 14,
  },
  {
    cause: "its runner was killed",
    text: /^model 'onnx' has crashed its process \(signal SIGKILL\)$/,
    http: 500,
    grpc: 13,
  },
];

/** Returns the cause of a documented error. Throws for any other error. `status` is null in a stream. */
export function causeOf(where: "http" | "grpc", status: number | null, text: string): string {
  for (const { cause, text: pattern, ...statuses } of documented)
    if (pattern.test(text) && (status === null || status === statuses[where])) return cause;
  throw new Error(`an error that is not documented: ${where} ${status ?? "in a stream"}: ${text}`);
}
