/**
 * The published model of one AWS service, without its documentation. `scripts/aws-spec.ts` generates it, and the module
 * `wire` interprets it.
 */
export interface ServiceModel {
  readonly service: string;
  readonly apiVersion: string;
  readonly protocols: readonly ("json" | "query" | "rest-json" | "cbor")[];
  readonly jsonVersion?: "1.0" | "1.1";
  readonly targetPrefix?: string;
  readonly xmlNamespace?: string;
  /** True if errors also have the code of the service's former query protocol. */
  readonly queryCompatible?: boolean;
  readonly operations: Readonly<Record<string, OperationModel>>;
  /** Names of the operations that are not implemented, so that errors can distinguish them from unknown operations. */
  readonly otherOperations: readonly string[];
  /** Errors by shape name. */
  readonly errors: Readonly<Record<string, ErrorModel>>;
  readonly shapes: Readonly<Record<string, Shape>>;
}

export interface OperationModel {
  readonly method: string;
  readonly uri: string;
  readonly status?: number;
  readonly input?: string;
  readonly output?: string;
  readonly resultWrapper?: string;
}

export interface ErrorModel {
  /** The code on the wire, if it differs from the shape's name. */
  readonly code?: string;
  readonly status?: number;
  readonly fault?: boolean;
}

export interface MemberModel {
  readonly shape: string;
  readonly location?: "header" | "headers" | "uri" | "querystring" | "statusCode";
  readonly locationName?: string;
  readonly flattened?: boolean;
  readonly timestampFormat?: TimestampFormat;
  readonly streaming?: boolean;
}

export type TimestampFormat = "unixTimestamp" | "iso8601" | "rfc822";

interface Traits {
  readonly sensitive?: boolean;
}
interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

export type StructureShape = Traits & {
  readonly type: "structure";
  readonly members: Readonly<Record<string, MemberModel>>;
  readonly required?: readonly string[];
  readonly payload?: string;
  readonly union?: boolean;
  readonly eventstream?: boolean;
};
export type ListShape = Traits &
  Bounds & { readonly type: "list"; readonly member: MemberModel; readonly flattened?: boolean };
export type MapShape = Traits &
  Bounds & {
    readonly type: "map";
    readonly key: MemberModel;
    readonly value: MemberModel;
    readonly flattened?: boolean;
  };
export type StringShape = Traits &
  Bounds & { readonly type: "string"; readonly pattern?: string; readonly enum?: readonly string[] };
export type NumberShape = Traits & Bounds & { readonly type: "integer" | "long" | "float" | "double" };
export type BlobShape = Traits & Bounds & { readonly type: "blob"; readonly streaming?: boolean };
export type BooleanShape = Traits & { readonly type: "boolean" };
export type TimestampShape = Traits & { readonly type: "timestamp"; readonly timestampFormat?: TimestampFormat };

/** Shapes of single values. */
export type ScalarShape = StringShape | NumberShape | BlobShape | BooleanShape | TimestampShape;

export type Shape = StructureShape | ListShape | MapShape | ScalarShape;

/**
 * Converts an imported JSON file of scripts/aws-spec.ts, for which the compiler infers `type: string`, to the model's
 * union types.
 */
export const asServiceModel = (json: unknown): ServiceModel => json as ServiceModel;
