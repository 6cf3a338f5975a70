/**
 * The KServe v2 inference body, JSON and binary, both ways, for whoever speaks it over HTTP: the JSON header is checked and
 * read without building objects of it, numbers go straight to tensor memory, binary tails are copied once from the socket
 * (or viewed), responses are printed as bytes. Texts are tritonserver's; asked of version 2.51.
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
export { placeInputs, placeInputsInChunks, viewTail, type PlaceOptions, type PlacedInputs } from "./place-inputs.ts";
export { customValue } from "./request-parameters.ts";
export { placeRawInput } from "./raw-request.ts";
