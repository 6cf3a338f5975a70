/** A client of the platform's services. */
export interface AwsCaller extends AsyncDisposable {
  readonly name: string;
  /**
   * Calls an operation by botocore's name of the service and the published names of operation and members. Bytes are
   * Buffers. Rejects with CallError.
   */
  call(service: string, operation: string, input: Members): Promise<Members>;
  /** Waits for the waiter's state; rejects with CallError if it is not reached. */
  wait(service: string, waiter: string, input: Members): Promise<void>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- answers are what each client makes of them, and looked into by tests
export type Members = Readonly<Record<string, any>>;

/** An error of a service, as the client reports it. */
export class CallError extends Error {
  readonly code: string;
  /** The client's class of the error. */
  readonly kind: string;

  constructor(code: string, message: string, kind: string) {
    super(message);
    this.code = code;
    this.kind = kind;
  }
}

/** The methods that the test steps use. */
export type AwsCalls = Pick<AwsCaller, "call" | "wait">;
