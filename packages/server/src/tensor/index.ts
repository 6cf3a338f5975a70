/** Tensors as views of bytes: datatypes, shapes, elements, shared memory. No models, no protocols. */
export { datatypeFromNumber, datatypes, isDatatype, type Datatype } from "./datatype.ts";
export type { Arena, BlockSource } from "./arena.ts";
export { createArena } from "./memory-arena.ts";
export { BlockSegment } from "./block-segment.ts";
export { elementCount, releaseTensors, type Block, type ArenaRange, type Tensor, type TensorHead } from "./tensor.ts";
export { countBytesElements, elementEnd, joinBytesElements, splitBytesElements } from "./bytes-elements.ts";
export {
  JsonDataReader,
  jsonBytesLengthMax,
  jsonElementsMax,
  readJsonElement,
  type JsonDataTarget,
} from "./json-data.ts";
export { JsonDataPrinter } from "./json-print.ts";
export { JsonScanner, JsonSyntaxError } from "./json-scanner.ts";
export { JsonWalk } from "./json-walk.ts";
export { JsonSink } from "./json-sink.ts";
export { equalsAscii, readJsonString } from "./json-string.ts";
