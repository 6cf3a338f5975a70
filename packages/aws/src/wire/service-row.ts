import type { IncomingMessage, ServerResponse } from "node:http";
import type { ByteLease, Clock, Logger } from "@galatea/base";
import type { Authenticator } from "../signing/index.ts";
import type { ServiceModel } from "../spec/index.ts";
import type { RefusedMember } from "./refused-members.ts";
import type { RefusedOperations } from "./refused-operations.ts";

/** Who asked, as far as the wire tells: account and region come from the credential scope, never from the URL. */
export interface CallContext {
  readonly requestId: string;
  readonly region: string;
  readonly accountId: string;
  /** The key that signed, null for an unsigned request. Proven only where credentials are configured. */
  readonly accessKeyId: string | null;
  /** The header `User-Agent`; empty where there is none. */
  readonly userAgent: string;
  readonly signal: AbortSignal;
  /** What the call holds of the memory for calls in flight: its body, its answer. All of it goes back when the connection is done with it. */
  readonly memory: ByteLease;
  /** Waits for the call's next turn of the event loop; rejects when the client is gone. Before each piece of a long computation. */
  readonly turn: () => Promise<void>;
}

/** One AWS API of the platform. What the gateway knows of a service is what its row says. */
export type ServiceRow = ModelledService | RawService;

interface ServiceFacts {
  /** The name that SigV4 signs for. Services may share one. */
  readonly scope: string;
}

/** A service whose requests are members of a published model, which the gateway parses, checks and answers by. */
export interface ModelledService extends ServiceFacts {
  readonly kind: "modelled";
  readonly model: ServiceModel;
  readonly validationCodes: ValidationCodes;
  /** The service in IAM's actions: what a caller must be allowed to do is `<iamPrefix>:<operation>`. */
  readonly iamPrefix: string;
  readonly operations: Readonly<Record<string, OperationRow<never> | LazyRow<OperationRow<never>>>>;
  /** What is said to the model's other operations, beside that they are not built. */
  readonly refusals?: readonly RefusedOperations[];
}

/** The code of the errors for inputs that fail the model's constraints. */
export interface ValidationCodes {
  readonly json: string;
  readonly query: string;
}

/**
 * One operation. Its input was parsed and checked against the published model (required members, types, patterns, lengths, enums) with
 * the service's own sentences; its output is serialised by it, and members that the model does not know are left out. Timestamps are
 * Date, blobs Uint8Array, integers number. Handlers throw AwsError.
 */
export interface OperationRow<Input, Output = object> {
  /** The ARN of what the operation is about; `*` unless given, for operations that IAM allows or denies for everything at once. */
  readonly resource?: (input: Input, context: CallContext) => string;
  /** Members of the input that are not built. */
  readonly refuses?: readonly RefusedMember[];
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

/** Rows of which some are loaded by their first call. */
export type LazyOperationRows<Operations extends OperationTypes<Operations>> = {
  readonly [Name in keyof Operations]: OperationRows<Operations>[Name] | LazyRow<OperationRows<Operations>[Name]>;
};

/** The named operations, whose rows `load` imports. */
export function lazyRows<Rows extends Readonly<Record<Name, OperationRow<never>>>, Name extends string>(
  names: readonly Name[],
  load: () => Promise<Rows>,
): { readonly [Each in Name]: LazyRow<Rows[Each]> } {
  const rows = names.map((name) => [name, async () => (await load())[name]]);
  return Object.fromEntries(rows) as { readonly [Each in Name]: LazyRow<Rows[Each]> };
}

/** For operations that IAM allows or denies for everything at once. */
export const anyResource = (): string => "*";

/**
 * A service whose traffic is bodies rather than members. It reads its requests itself: the gateway gives it the request as it came, asks
 * whether the caller may do what was opened, and has it done.
 */
export interface RawService extends ServiceFacts {
  readonly kind: "raw";
  /** By name. The actions are IAM's words for what a caller must be allowed to do. */
  readonly operations: Readonly<Record<string, { readonly action: string }>>;
  readonly protocol: "rest-json" | "rest-xml";
  /**
   * Requests for the paths of the model's operations are this service's. Null for a service without a model that is interpreted here:
   * it takes everything that is signed for its scope, and everything unsigned that no other service takes.
   */
  readonly model: ServiceModel | null;
  /** Those that stand on every answer. */
  readonly setHeaders: (response: ServerResponse, requestId: string) => void;
  /**
   * Authenticates (some know presigned URLs or signed chunks, and bodies must not be buffered to be verified), finds the operation, and
   * checks what the request says beside its body. Answers `Expect: 100-continue` when it reads the body.
   */
  readonly open: (exchange: RawExchange) => Promise<OpenedCall>;
  /** Answers what was thrown, in the service's own shape. */
  readonly answerError: (exchange: RawExchange, thrown: unknown) => void;
}

export interface RawExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly context: CallContext;
  /** Null: the platform is open, nothing is verified. */
  readonly authenticator: Authenticator | null;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** One operation of a raw service; `Call` is what the service made of the request. */
export interface RawOperationRow<Call> {
  readonly action: string;
  readonly resource: (call: Call) => string;
  readonly handle: (call: Call) => Promise<void>;
}

export interface OpenedCall {
  readonly action: string;
  readonly resource: () => string;
  /** Further actions, about everything there is, that the caller needs to be allowed for the way in which it calls. */
  readonly needs?: readonly string[];
  readonly handle: () => Promise<void>;
}

export function openedCall<Call>(row: RawOperationRow<Call>, call: Call): OpenedCall {
  return { action: row.action, resource: () => row.resource(call), handle: () => row.handle(call) };
}
