import type { IncomingMessage, ServerResponse } from "node:http";
import type { ByteLease, Clock, Logger } from "@galatea/base";
import type { Authenticator } from "../signing/index.ts";
import type { ServiceModel } from "../spec/index.ts";
import type { UnsupportedMember } from "./unsupported-members.ts";
import type { UnsupportedOperations } from "./unsupported-operations.ts";

/** The caller of an operation: account and region come from the credential scope, never from the URL. */
export interface CallContext {
  readonly requestId: string;
  readonly region: string;
  readonly accountId: string;
  /** The key that signed, null for an unsigned request. Verified only if credentials are configured. */
  readonly accessKeyId: string | null;
  /** The header `User-Agent`; empty if absent. */
  readonly userAgent: string;
  readonly signal: AbortSignal;
  /**
   * The call's share of the memory for calls in flight: its body and its response. All of it is returned when the
   * connection is done with the call.
   */
  readonly memory: ByteLease;
  /**
   * Resolves in the call's next tick of the event loop; rejects when the client has disconnected. Awaited before each
   * step of a long computation.
   */
  readonly nextTick: () => Promise<void>;
}

/** One AWS API of the platform, as the gateway needs to know it. */
export type ServiceRow = ModelledService | RawService;

interface ServiceFacts {
  /** The service name in SigV4 scopes. Several services may share one. */
  readonly scope: string;
}

/** A service with a published model, by which the gateway parses and checks requests and writes responses. */
export interface ModelledService extends ServiceFacts {
  readonly kind: "modelled";
  readonly model: ServiceModel;
  readonly validationCodes: ValidationCodes;
  /** The service in IAM's actions, which are `<iamPrefix>:<operation>`. */
  readonly iamPrefix: string;
  readonly operations: Readonly<Record<string, OperationRow<never> | LazyRow<OperationRow<never>>>>;
  /** Advice for operations of the model that are not implemented. */
  readonly unsupportedOperations?: readonly UnsupportedOperations[];
}

/** The error codes for inputs that violate the model's constraints. */
export interface ValidationCodes {
  readonly json: string;
  readonly query: string;
}

/**
 * One operation. Its input was parsed and checked against the published model (required members, types, patterns,
 * lengths, enums) with the service's own messages; its output is serialised by the model without unknown members.
 * Timestamps are Date, blobs Uint8Array, integers number. Handlers throw AwsError.
 */
export interface OperationRow<Input, Output = object> {
  /**
   * Returns the ARN of the operation's resource; `*` by default, for operations that IAM allows or denies for all
   * resources at once.
   */
  readonly resource?: (input: Input, context: CallContext) => string;
  /** Members of the input that are not implemented. */
  readonly unsupportedMembers?: readonly UnsupportedMember[];
  readonly handle: (input: Input, context: CallContext) => Promise<Output>;
}

/** A row for each operation of a generated interface of `spec/gen`, and no other. */
export type OperationRows<Operations extends OperationTypes<Operations>> = {
  readonly [Name in keyof Operations]: OperationRow<Operations[Name]["input"], Operations[Name]["output"]>;
};

type OperationTypes<Operations> = {
  readonly [Name in keyof Operations]: { readonly input: object; readonly output: object };
};

/** Imports the code of an operation, which the first call needs, and returns its row. */
export type LazyRow<Row> = () => Promise<Row>;

/** Rows, some of which are loaded by their first call. */
export type LazyOperationRows<Operations extends OperationTypes<Operations>> = {
  readonly [Name in keyof Operations]: OperationRows<Operations>[Name] | LazyRow<OperationRows<Operations>[Name]>;
};

/** Returns rows for the named operations, which `load` imports. */
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
 * A service whose requests are bodies rather than members, such as S3. The service reads its requests itself: the gateway calls `open`,
 * checks the permission for the opened call, and runs it.
 */
export interface RawService extends ServiceFacts {
  readonly kind: "raw";
  /** Operations by name, with their actions in IAM. */
  readonly operations: Readonly<Record<string, { readonly action: string }>>;
  readonly protocol: "rest-json" | "rest-xml";
  /**
   * Requests for the paths of the model's operations belong to this service. Null for a service without such a model:
   * it gets everything signed for its scope, and everything unsigned that no other service takes.
   */
  readonly model: ServiceModel | null;
  /** Sets the headers of every response. */
  readonly setHeaders: (response: ServerResponse, requestId: string) => void;
  /**
   * Authenticates the request (with presigned URLs or signed chunks, whose bodies must not be buffered), finds the
   * operation, and checks everything but the body. Answers `Expect: 100-continue` when it reads the body.
   */
  readonly open: (exchange: RawExchange) => Promise<OpenedCall>;
  /** Sends an error in the service's own format. */
  readonly sendError: (exchange: RawExchange, thrown: unknown) => void;
}

export interface RawExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly context: CallContext;
  /** Null: requests are not authenticated. */
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
  /** Further actions that the caller needs permission for, on all resources. */
  readonly additionalActions?: readonly string[];
  readonly handle: () => Promise<void>;
}

export function openedCall<Call>(row: RawOperationRow<Call>, call: Call): OpenedCall {
  return { action: row.action, resource: () => row.resource(call), handle: () => row.handle(call) };
}
