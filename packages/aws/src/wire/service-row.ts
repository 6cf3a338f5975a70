import type { IncomingMessage, ServerResponse } from "node:http";
import type { ByteLease, Clock, Logger } from "@galatea/base";
import type { Authenticator } from "../signing/index.ts";
import type { ServiceModel } from "../spec/index.ts";
import type { UnsupportedMember } from "./unsupported-members.ts";
import type { UnsupportedOperations } from "./unsupported-operations.ts";

/** The caller of an operation. Account and region come from the credential scope, never from the URL. */
export interface CallContext {
  readonly requestId: string;
  readonly region: string;
  readonly accountId: string;
  /** The key that signed the request; null for an unsigned request. Verified only if credentials are configured. */
  readonly accessKeyId: string | null;
  /** The header `User-Agent`; empty if absent. */
  readonly userAgent: string;
  readonly signal: AbortSignal;
  /**
   * The call's share of the memory for calls in flight, which contains its body and its response. It is released when
   * the response has been sent or the connection is closed.
   */
  readonly memory: ByteLease;
  /**
   * Resolves in the call's next tick of the event loop. Rejects when the client has disconnected. A long computation
   * awaits it before each step, so that other calls make progress.
   */
  readonly nextTick: () => Promise<void>;
}

/** The description of one AWS API, from which the gateway serves it. */
export type ServiceRow = ModelledService | RawService;

interface ServiceFacts {
  /** The service name in SigV4 scopes. Several services may share one. */
  readonly scope: string;
}

/**
 * A service with a published model. The gateway parses and checks its requests and writes its responses from the model.
 */
export interface ModelledService extends ServiceFacts {
  readonly kind: "modelled";
  readonly model: ServiceModel;
  readonly validationCodes: ValidationCodes;
  /** The prefix of the service's IAM actions, which are `<iamPrefix>:<operation>`. */
  readonly iamPrefix: string;
  readonly operations: Readonly<Record<string, OperationRow<never> | LazyRow<OperationRow<never>>>>;
  /** Advice in errors for operations of the model that are not implemented. */
  readonly unsupportedOperations?: readonly UnsupportedOperations[];
}

/** The error codes for inputs that violate the model's constraints. */
export interface ValidationCodes {
  readonly json: string;
  readonly query: string;
}

/**
 * One operation. The gateway parses and checks its input against the published model (required members, types,
 * patterns, lengths, enums), and reports violations with the service's messages. It serializes the output by the model,
 * without unknown members. Timestamps are Date, blobs Uint8Array, integers number. Handlers throw AwsError.
 */
export interface OperationRow<Input, Output = object> {
  /**
   * Returns the ARN of the operation's resource. Absent: `*`, for operations that IAM allows or denies for all
   * resources at once.
   */
  readonly resource?: (input: Input, context: CallContext) => string;
  /** Members of the input that are not implemented. */
  readonly unsupportedMembers?: readonly UnsupportedMember[];
  readonly handle: (input: Input, context: CallContext) => Promise<Output>;
}

/** Exactly one row for each operation of a generated interface of `spec/gen`. */
export type OperationRows<Operations extends OperationTypes<Operations>> = {
  readonly [Name in keyof Operations]: OperationRow<Operations[Name]["input"], Operations[Name]["output"]>;
};

type OperationTypes<Operations> = {
  readonly [Name in keyof Operations]: { readonly input: object; readonly output: object };
};

/** A function that imports an operation's code and returns its row. The first call of the operation runs it. */
export type LazyRow<Row> = () => Promise<Row>;

/** Rows of operations. Some are loaded by the first call of their operation. */
export type LazyOperationRows<Operations extends OperationTypes<Operations>> = {
  readonly [Name in keyof Operations]: OperationRows<Operations>[Name] | LazyRow<OperationRows<Operations>[Name]>;
};

/** Returns rows for the named operations. The first call of one of them runs `load`, which imports their code. */
export function lazyRows<Rows extends Readonly<Record<Name, OperationRow<never>>>, Name extends string>(
  names: readonly Name[],
  load: () => Promise<Rows>,
): { readonly [Each in Name]: LazyRow<Rows[Each]> } {
  const rows = names.map((name) => [name, async () => (await load())[name]]);
  return Object.fromEntries(rows) as { readonly [Each in Name]: LazyRow<Rows[Each]> };
}

/** Returns `*`, for operations that IAM allows or denies for all resources at once. */
export const anyResource = (): string => "*";

/**
 * A service whose requests contain bodies rather than members, such as S3. The gateway calls `open`, which reads the
 * request, then checks the permission for the opened call, and runs the call.
 */
export interface RawService extends ServiceFacts {
  readonly kind: "raw";
  /** Operations by name, with their actions in IAM. */
  readonly operations: Readonly<Record<string, { readonly action: string }>>;
  readonly protocol: "rest-json" | "rest-xml";
  /**
   * A service with a model receives the requests for the paths of its operations. Null: the service receives every
   * request that is signed for its scope, and every unsigned request that no other service receives.
   */
  readonly model: ServiceModel | null;
  /** Sets the headers of every response. */
  readonly setHeaders: (response: ServerResponse, requestId: string) => void;
  /**
   * Authenticates the request, finds the operation, and checks everything except the body, which may be too long to
   * buffer. The call responds to `Expect: 100-continue` when it reads the body.
   */
  readonly open: (exchange: RawExchange) => Promise<OpenedCall>;
  /** Sends an error in the service's own format. */
  readonly sendError: (exchange: RawExchange, thrown: unknown) => void;
}

export interface RawExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly context: CallContext;
  /** Verifies signatures; null: requests are not authenticated. */
  readonly authenticator: Authenticator | null;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** One operation of a raw service; `Call` is the opened request. */
export interface RawOperationRow<Call> {
  readonly action: string;
  readonly resource: (call: Call) => string;
  readonly handle: (call: Call) => Promise<void>;
}

export interface OpenedCall {
  readonly action: string;
  readonly resource: () => string;
  /** Actions that the caller must also be permitted to perform, on all resources. */
  readonly additionalActions?: readonly string[];
  readonly handle: () => Promise<void>;
}

export function openedCall<Call>(row: RawOperationRow<Call>, call: Call): OpenedCall {
  return { action: row.action, resource: () => row.resource(call), handle: () => row.handle(call) };
}
