/**
 * The published service models as plain data; each service imports its own from `gen/`, with its types. The module
 * `wire` interprets them.
 */
export {
  asServiceModel,
  type ErrorModel,
  type ListShape,
  type MapShape,
  type MemberModel,
  type OperationModel,
  type ServiceModel,
  type ScalarShape,
  type Shape,
  type StringShape,
  type StructureShape,
  type TimestampFormat,
} from "./service-model.ts";
