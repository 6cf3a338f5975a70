/** Tensors as views of bytes: datatypes, shapes, elements, shared memory. No models, no protocols. */
export {
  datatypeOfConfigName,
  datatypeOfNumber,
  datatypes,
  isDatatype,
  type ConfigDatatype,
  type Datatype,
} from "./datatype.ts";
export type { Arena } from "./arena.ts";
export { elementCount, releaseTensors, type Block, type Tensor } from "./tensor.ts";
