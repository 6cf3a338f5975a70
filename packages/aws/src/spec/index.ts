/**
 * The published service models as plain data. Each service imports its model from `gen/`, with the types of its
 * operations. The module `wire` interprets the models.
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
