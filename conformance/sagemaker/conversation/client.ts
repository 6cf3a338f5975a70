/** A caller of the platform's services: a row for each kind of client that users have. */
export interface AwsCaller extends AsyncDisposable {
  readonly name: string;
  /** By botocore's names of services, and the published names of operations and members. Bytes are Buffers, both ways. Rejects with CallError. */
  call(service: string, operation: string, input: Members): Promise<Members>;
  /** Until the waiter's state; rejects with CallError when it does not come. */
  wait(service: string, waiter: string, input: Members): Promise<void>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- answers are what each client makes of them, and looked into by tests
export type Members = Readonly<Record<string, any>>;

/** What a service said, as the client gives it. */
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

/** What the steps ask with. */
export type Asking = Pick<AwsCaller, "call" | "wait">;
