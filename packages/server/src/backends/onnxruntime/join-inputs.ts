import { InferenceError } from "@galatea/base";
import type { InferenceRequest } from "../../inference/index.ts";
import { type Arena, type Block, datatypes, type Tensor } from "../../tensor/index.ts";
import type { ModelInput } from "./model-run.ts";

export interface InputSlot {
  readonly name: string;
  /** Index in the session's list of inputs. */
  readonly index: number;
}

export interface JoinedInputs {
  readonly inputs: readonly ModelInput[];
  /** Number of rows (size on the batch axis) of each request; 1 if the model does not batch. */
  readonly rowCounts: readonly number[];
  /** Blocks that were allocated for joined inputs. The caller releases them after the run. */
  readonly blocks: readonly Block[];
}

/**
 * Returns the inputs of one run for a batch. Tensors of a single request are passed by reference, as are tensors that are adjacent in
 * memory. Tensors are usually adjacent after an ensemble step that ran as one batch. Other tensors are copied into one block.
 */
export function joinInputs(
  batch: readonly InferenceRequest[],
  slots: readonly InputSlot[],
  arena: Arena,
): JoinedInputs {
  const inputs: ModelInput[] = [];
  const blocks: Block[] = [];
  try {
    for (const slot of slots) {
      const tensors = findAll(batch, slot.name);
      if (tensors === null) continue;
      const first = tensors[0] as Tensor;
      const shape = tensors.length === 1 ? first.shape : joinedShape(tensors);
      inputs.push({ index: slot.index, shape, ...joinBytes(tensors, arena, blocks) });
    }
  } catch (error) {
    for (const block of blocks) block.release();
    throw error;
  }
  return { inputs, rowCounts: batch.map((request) => request.inputs[0]?.shape[0] ?? 1), blocks };
}

/** Returns the input with this name of every request; null if the input is optional and no request has it. */
function findAll(batch: readonly InferenceRequest[], name: string): readonly Tensor[] | null {
  const tensors: Tensor[] = [];
  for (const request of batch) {
    const tensor = request.inputs.find((input) => input.name === name);
    if (tensor !== undefined) tensors.push(tensor);
  }
  if (tensors.length === 0) return null;
  if (tensors.length < batch.length) {
    throw new InferenceError("INTERNAL", `input '${name}' is missing in some requests of a batch`);
  }
  return tensors;
}

function joinedShape(tensors: readonly Tensor[]): readonly number[] {
  const [first, ...rest] = (tensors[0] as Tensor).shape;
  let rows = 0;
  for (const tensor of tensors) {
    if (tensor.shape.length !== rest.length + 1 || rest.some((dim, axis) => tensor.shape[axis + 1] !== dim)) {
      throw new InferenceError(
        "INTERNAL",
        `input '${tensor.name}' has shapes [${[first, ...rest].join()}] and [${tensor.shape.join()}] in one batch`,
      );
    }
    rows += tensor.shape[0] as number;
  }
  return [rows, ...rest];
}

function joinBytes(
  tensors: readonly Tensor[],
  arena: Arena,
  blocks: Block[],
): { readonly byteOffset: number; readonly byteLength: number } {
  const { data: first, datatype, block: firstBlock } = tensors[0] as Tensor;
  const elementBytes = datatype === "BYTES" ? 1 : datatypes[datatype].byteSize;
  let byteLength = 0;
  let adjacent = true;
  for (const { data, block } of tensors) {
    adjacent &&= isIn(arena, block, data);
    adjacent &&= data.buffer === first.buffer && data.byteOffset === first.byteOffset + byteLength;
    byteLength += data.byteLength;
  }
  if (byteLength === 0) return { byteOffset: 0, byteLength };
  // The library must not read misaligned elements. Binary data after a JSON header of odd length is misaligned.
  const aligned = first.byteOffset % elementBytes === 0;
  if (adjacent && aligned && firstBlock !== null) {
    return { byteOffset: firstBlock.byteOffset + first.byteOffset - firstBlock.bytes.byteOffset, byteLength };
  }
  const block = arena.allocate(byteLength);
  blocks.push(block);
  let at = 0;
  for (const { data } of tensors) {
    block.bytes.set(data, at);
    at += data.byteLength;
  }
  return { byteOffset: block.byteOffset, byteLength };
}

function isIn(arena: Arena, block: Block | null, data: Uint8Array): boolean {
  return block !== null && block.arenaId === arena.id && data.buffer === block.bytes.buffer;
}
