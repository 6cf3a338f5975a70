/**
 * The published model of one AWS service, without its documentation. Written by scripts/aws-spec.ts, interpreted by
 * `wire`.
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
  /** Operations that are not implemented; the error names them. */
  readonly otherOperations: readonly string[];
  /** By shape name. */
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
  /** The code on the wire, if it is not the shape's name. */
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

/** Asserts the closed unions of a file of scripts/aws-spec.ts: the compiler infers `type: string` from JSON. */
export const asServiceModel = (json: unknown): ServiceModel => json as ServiceModel;
