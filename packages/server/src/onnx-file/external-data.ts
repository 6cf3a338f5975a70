import type { Constant, ExternalBytes, OnnxModel } from "./onnx-writer.ts";
import type { OnnxChunk } from "./chunks.ts";

/** Readers can map constants that begin at a page boundary. */
const pageBytes = 4096;
/** Smaller constants stay in the model: among them are shapes, which readers need. */
const externalBytesMin = 1024;

/** A model whose larger constants are moved to a file beside it, and the content of that file. */
export interface SplitModel {
  readonly model: OnnxModel;
  readonly pieces: readonly OnnxChunk[];
  readonly byteLength: number;
}

/** Moves the larger constants of the graph to a file `location`. (Constants of loops and branches stay in the model.) */
export function splitModel(model: OnnxModel, location: string): SplitModel {
  const pieces: OnnxChunk[] = [];
  let byteLength = 0;
  const constants = model.constants.map((constant): Constant => {
    const { bytes } = constant;
    if ("location" in bytes || bytes.byteLength < externalBytesMin) return constant;
    const gap = (pageBytes - (byteLength % pageBytes)) % pageBytes;
    if (gap > 0) pieces.push(new Uint8Array(gap));
    const place: ExternalBytes = { location, offset: byteLength + gap, byteLength: bytes.byteLength };
    pieces.push(bytes);
    byteLength = place.offset + place.byteLength;
    return { ...constant, bytes: place };
  });
  return { model: { ...model, constants }, pieces, byteLength };
}
