/**
 * The published service models as plain data; each service takes its own from `gen/`, where its types are too. What a model means is
 * aws/wire's business.
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
