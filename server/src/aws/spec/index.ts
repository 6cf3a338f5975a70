/** The published service models, by the name that boto3 gives the service. Plain data: what it means is aws/wire's business. */
export type {
  BlobShape,
  ErrorModel,
  ListShape,
  MapShape,
  MemberModel,
  NumberShape,
  OperationModel,
  ServiceModel,
  Shape,
  StringShape,
  StructureShape,
} from "./service-model.ts";
export { serviceModels, type ModelledService } from "./service-models.ts";
