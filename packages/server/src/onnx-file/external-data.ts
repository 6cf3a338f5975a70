import type { Constant, ExternalBytes, OnnxModel } from "./onnx-writer.ts";
import type { OnnxPiece } from "./pieces.ts";

/** A reader may map constants that begin at a page. */
const pageBytes = 4096;
/** Smaller ones stay in the model: shapes among them, which readers want to see. */
const externalBytesMin = 1024;

/** A model whose larger constants lie in a file beside it, and what is to be written there. */
export interface SplitModel {
  readonly model: OnnxModel;
  readonly pieces: readonly OnnxPiece[];
  readonly byteLength: number;
}

/** Moves the larger constants of the graph to a file called `location`. (Those of loops and branches stay where they are.) */
export function splitModel(model: OnnxModel, location: string): SplitModel {
  const pieces: OnnxPiece[] = [];
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
