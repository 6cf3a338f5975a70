import { InferenceError, inferenceCodes } from "@galatea/base";
import { noParameters, releaseResponse, type InferenceResponse, type Outcome } from "../../inference/index.ts";
import { datatypeFromNumber, datatypes, releaseTensors, type Arena, type Tensor } from "../../tensor/index.ts";
import type { BlsClient } from "../bls-client.ts";
import {
  controlVerbs,
  decodeCall,
  decodeControl,
  encodeCallResponse,
  encodeCallSpace,
  encodeControlResponse,
  type WireCall,
  type WireCallResponse,
  type WireControl,
} from "./call-codec.ts";
import type { PythonCallingExecution } from "./calling-execution.ts";
import { printParameters } from "./execution-codec.ts";
import { decodeSpaceRequest, readHeader } from "./frame-decoder.ts";
import { frameLimits } from "./frame-limits.ts";
import type { LentBlock, LentBlocks } from "./lent-blocks.ts";
import { lendOutputBlocks } from "./lend-output-blocks.ts";
import { readFlatObject } from "./untrusted-json.ts";
import {
  frameBytesMax,
  kinds,
  lentBytes,
  MalformedRecord,
  sequenceEnd,
  sequenceStart,
  tensorBytes,
  type WireTensor,
} from "./wire.ts";

export interface CallsOptions {
  /** The calling worker's lent blocks and socket. */
  readonly worker: {
    readonly lent: LentBlocks;
    send(frame: Uint8Array): unknown;
    sendSoon(frame: Uint8Array): unknown;
  };
  readonly others: () => BlsClient;
  readonly arena: Arena;
  readonly inlineBytesMax: number;
  /** Returns the execution with this id; null when it has ended or never existed. */
  readonly executionOf: (executionId: number) => PythonCallingExecution | null;
}

/** A call to another model whose last response has not been sent yet. */
interface OpenCall {
  readonly id: number;
  readonly executionId: number;
  readonly controller: AbortController;
  /** True once the CALL frame has arrived. Before, the worker has only requested memory for the call's inputs. */
  isCalled: boolean;
  readonly spaces: readonly LentBlock[];
  /** Callbacks that acknowledge responses which were sent but not read. */
  readonly unread: (() => void)[];
}

const noExecution = -1;

/** The calls of one worker to other models. Each call lasts from its first frame until its last response. */
export class WorkerCalls {
  readonly #options: CallsOptions;
  readonly #open = new Map<number, OpenCall>();
  #isOver = false;

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  onFrame(frame: Buffer): void {
    const { kind, id, extra } = readHeader(frame);
    if (kind === kinds.call) return this.#call(decodeCall(frame));
    if (kind === kinds.callSpaceRequest) return this.#giveSpace(id, decodeSpaceRequest(frame));
    if (kind === kinds.control) return this.#control(decodeControl(frame));
    // Frames about a completed call are ignored: the worker sent them before it received the last response.
    const call = this.#open.get(id);
    if (call === undefined) return;
    if (kind === kinds.callCredit) this.#acknowledge(call, extra);
    else this.#cancel(call);
  }

  /** Aborts all calls of a worker that has ended. */
  end(): void {
    this.#isOver = true;
    for (const call of this.#open.values()) {
      call.controller.abort();
      for (const acknowledge of call.unread.splice(0)) acknowledge();
    }
    this.#open.clear();
  }

  #begin(id: number, executionId: number, spaces: readonly LentBlock[]): OpenCall {
    if (this.#open.has(id)) throw new MalformedRecord(`call ${id}, which is already running`);
    if (this.#open.size >= frameLimits.callsMax) throw new MalformedRecord("too many concurrent calls of a worker");
    const call = { id, executionId, controller: new AbortController(), isCalled: false, spaces, unread: [] };
    this.#open.set(id, call);
    return call;
  }

  #giveSpace(id: number, sizes: readonly number[]): void {
    const { worker, arena } = this.#options;
    if (this.#open.has(id)) throw new MalformedRecord(`call ${id}, which is already running`);
    const lent = lendOutputBlocks(worker.lent, arena, noExecution, sizes);
    if (lent instanceof InferenceError) return void worker.send(encodeCallSpace(id, lent.message));
    try {
      this.#begin(id, noExecution, lent);
    } catch (error) {
      worker.lent.revoke(lent);
      throw error;
    }
    worker.send(encodeCallSpace(id, lent));
  }

  #call(wire: WireCall): void {
    const { others, executionOf, worker } = this.#options;
    const requested = this.#open.get(wire.callId);
    if (requested?.isCalled === true) throw new MalformedRecord(`call ${wire.callId}, which is already running`);
    if (requested !== undefined) this.#open.delete(wire.callId);
    const executionId = wire.executionId ?? noExecution;
    const call = this.#begin(wire.callId, executionId, requested?.spaces ?? []);
    call.isCalled = true;
    const caller = wire.executionId === null ? null : executionOf(wire.executionId);
    const parameters = parametersOf(wire);
    const inputs = this.#inputs(wire, call);
    worker.lent.endSpaces(call.spaces);
    caller?.join(call.controller);
    const { modelName, modelVersion, requestId: id, requested: requestedOutputs, timeoutUs: queueTimeoutUs } = wire;
    const request = {
      id,
      modelName,
      modelVersion,
      inputs,
      requestedOutputs,
      queueTimeoutUs,
      caller,
      parameters,
      sequence: sequenceOf(wire),
      signal: call.controller.signal,
    };
    const disconnect = () => caller?.leave(call.controller);
    if (!wire.isStreamed)
      void others()
        .infer(request)
        .catch((error: unknown) => InferenceError.from(error))
        .then((outcome) => this.#respond(call, outcome, true))
        .finally(disconnect);
    else
      void others()
        .stream(request, {
          respond: (outcome, isFinal, consumed) => {
            if (outcome !== null) call.unread.push(consumed);
            this.#respond(call, outcome, isFinal);
          },
        })
        .finally(disconnect);
  }

  /**
   * Decodes the inputs of a call. Throws MalformedRecord for a frame that a correct worker never sends; no reference to a block is taken
   * then.
   */
  #inputs(wire: WireCall, call: OpenCall): Tensor[] {
    const inputs = wire.inputs.map((input) => this.#input(input, wire.names[input.nameIndex]!, call));
    for (const { block } of inputs) block?.retain();
    return inputs;
  }

  #input(
    { datatype: number, shape, blockRef, byteOffset, byteLength, data }: WireTensor,
    name: string,
    call: OpenCall,
  ) {
    const datatype = datatypeFromNumber(number);
    if (datatype === undefined) throw new MalformedRecord(`an input of datatype ${number}`);
    if (data !== null) return { name, datatype, shape, data, block: null };
    const lent = call.spaces.find(({ lentId }) => lentId === blockRef) ?? this.#options.worker.lent.input(blockRef!);
    if (byteOffset + byteLength > lent.byteLength) throw new MalformedRecord("an input outside its block");
    const { block } = lent;
    return { name, datatype, shape, data: block.bytes.subarray(byteOffset, byteOffset + byteLength), block };
  }

  #acknowledge(call: OpenCall, count: number): void {
    if (count > call.unread.length) throw new MalformedRecord("responses acknowledged that were never sent");
    for (const consumed of call.unread.splice(0, count)) consumed();
  }

  #cancel(call: OpenCall): void {
    call.controller.abort();
    if (call.isCalled) return;
    this.#open.delete(call.id);
    this.#options.worker.lent.endSpaces(call.spaces);
  }

  #respond(call: OpenCall, outcome: Outcome | null, isLast: boolean): void {
    if (this.#isOver) return releaseOutcome(outcome);
    if (isLast) {
      this.#open.delete(call.id);
      for (const acknowledge of call.unread.splice(0)) acknowledge();
    }
    const { worker } = this.#options;
    worker.sendSoon(this.#frame(call, outcome, isLast));
  }

  #frame(call: OpenCall, outcome: Outcome | null, isLast: boolean): Buffer {
    const callId = call.id;
    if (outcome === null) return encodeCallResponse({ callId, isLast, loans: [], response: { kind: "none" } });
    const failed = ({ code, message }: InferenceError) => {
      const text = message === "" && code === "CANCELLED" ? "the call was cancelled" : message;
      const response = { kind: "error", code: inferenceCodes.indexOf(code), message: text } as const;
      return encodeCallResponse({ callId, isLast, loans: [], response });
    };
    if (outcome instanceof InferenceError) return failed(outcome);
    const tooLarge = this.#tooLarge(outcome);
    if (tooLarge !== null) {
      releaseResponse(outcome);
      return failed(tooLarge);
    }
    const response = this.#outputs(call, outcome);
    return response instanceof InferenceError ? failed(response) : encodeCallResponse({ callId, isLast, ...response });
  }

  #tooLarge({ outputs, parameters }: InferenceResponse): InferenceError | null {
    let bytes = 1024 * 1024 + 6 * printParameters(parameters).length;
    for (const { name, shape, data } of outputs) {
      bytes += 6 * name.length + tensorBytes + 8 * shape.length + lentBytes + 16;
      if (data.byteLength <= this.#options.inlineBytesMax) bytes += data.byteLength;
    }
    if (bytes <= frameBytesMax && outputs.length <= frameLimits.callNamesMax) return null;
    const what = `the response's ${outputs.length} small tensors and its parameters take ${bytes} bytes or more`;
    return new InferenceError("INTERNAL", `${what}; the Python backend accepts at most ${frameBytesMax}`);
  }

  /** Lends the blocks of large outputs to the worker. Transfers or releases the references of the response. */
  #outputs(call: OpenCall, response: InferenceResponse): Pick<WireCallResponse, "loans" | "response"> | InferenceError {
    const { worker, arena, inlineBytesMax } = this.#options;
    const loans: LentBlock[] = [];
    const outputs: WireTensor[] = [];
    try {
      for (const { datatype, shape, data, block } of response.outputs) {
        const { byteLength } = data;
        const record = { nameIndex: outputs.length, datatype: datatypes[datatype].configNumber, shape, byteLength };
        if (byteLength <= inlineBytesMax) {
          outputs.push({ ...record, blockRef: null, byteOffset: 0, data });
          continue;
        }
        const isHere = block !== null && block.arenaId === arena.id;
        const lent = isHere ? block : arena.allocate(byteLength);
        if (isHere) lent.retain();
        else lent.bytes.set(data);
        const byteOffset = isHere ? data.byteOffset - lent.bytes.byteOffset : 0;
        // The response has one reference to the block, which is transferred to the lent block.
        const isShared = isHere && lent.referenceCount > 2;
        const index = loans.push(worker.lent.lend(lent, call.executionId, "input", isShared)) - 1;
        outputs.push({ ...record, blockRef: index, byteOffset, data: null });
      }
    } catch (error) {
      worker.lent.revoke(loans);
      if (!(error instanceof InferenceError)) throw error;
      return error;
    } finally {
      releaseTensors(response.outputs);
    }
    const parametersJson = response.parameters.size === 0 ? "" : printParameters(response.parameters);
    const names = response.outputs.map(({ name }) => name);
    return { loans, response: { kind: "outputs", names, parametersJson, outputs } };
  }

  #control(wire: WireControl): void {
    const { worker } = this.#options;
    const call = this.#begin(wire.controlId, noExecution, []);
    call.isCalled = true;
    void this.#controlled(wire, call.controller.signal)
      .then((ready) => ({ ready }))
      .catch((thrown: unknown) => {
        const { code, message } = InferenceError.from(thrown);
        return { code: inferenceCodes.indexOf(code), message };
      })
      .then((said) => {
        this.#open.delete(wire.controlId);
        if (!this.#isOver) worker.send(encodeControlResponse(wire.controlId, said));
      });
  }

  async #controlled(wire: WireControl, signal: AbortSignal): Promise<boolean> {
    const others = this.#options.others();
    const { verb, modelName, modelVersion, configJson, files, unloadDependents } = wire;
    if (verb === controlVerbs.ready) return others.isReady(modelName, modelVersion);
    const override = configJson === null && files.size === 0 ? null : { configJson, files: overrideFiles(files) };
    if (verb === controlVerbs.load) await others.load(modelName, override, signal);
    else if (verb === controlVerbs.unload) await others.unload(modelName, unloadDependents);
    else throw new InferenceError("UNSUPPORTED", `model control of kind ${verb} is not known`);
    return true;
  }
}

/** Returns paths inside the model's directory. File names have the form that `pb_utils.load_model` documents: `file:<path>`. */
function overrideFiles(named: ReadonlyMap<string, Uint8Array>): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  for (const [name, content] of named) {
    if (!name.startsWith("file:"))
      throw new InferenceError("INVALID_ARG", `the names of 'files' must begin with 'file:' (found '${name}')`);
    files.set(name.slice("file:".length), content);
  }
  return files;
}

function parametersOf({ parametersJson }: WireCall) {
  if (parametersJson === "") return noParameters;
  return readFlatObject(parametersJson, { left: frameLimits.parameterMembersMax });
}

function sequenceOf({ correlation, flags }: WireCall) {
  if ((correlation === 0n || correlation === "") && flags === 0) return null;
  return { id: correlation, start: (flags & sequenceStart) !== 0, end: (flags & sequenceEnd) !== 0 };
}

function releaseOutcome(outcome: Outcome | null): void {
  if (outcome !== null && !(outcome instanceof InferenceError)) releaseResponse(outcome);
}
