/**
 * The KServe v2 inference body, JSON and binary, in both directions, for protocols over HTTP. The JSON header is checked and read without
 * creating objects of it, numbers are written directly to tensor memory, binary tails are copied once from the socket (or viewed),
 * responses are printed as bytes. Texts are those of tritonserver 2.51.
 */
export { classify } from "./classification.ts";
export { leadingInteger } from "./header-length.ts";
export {
  parseInferHeader,
  parsedTextBytes,
  refuseHalfFloats,
  type InferHeader,
  type InputHeader,
} from "./infer-header.ts";
export {
  jsonTextBytesMax,
  printParameter,
  ResponseEncoder,
  type EncodeOptions,
  type EncodedResponse,
} from "./infer-response.ts";
export {
  booleanAt,
  countVisited,
  eachMember,
  missingMember,
  parsingRequestJson,
  stringAt,
  unableToParse,
} from "./json-access.ts";
export { inChunks, printInChunks, walkedDocument, wholeTextBytesMax } from "./in-chunks.ts";
export {
  placeInputs,
  placeInputsInChunks,
  viewTail,
  type InputPlacementOptions,
  type PlacedInputs,
} from "./place-inputs.ts";
export { customValue } from "./request-parameters.ts";
export { placeRawInput } from "./raw-request.ts";
