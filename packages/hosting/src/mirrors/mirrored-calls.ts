import type { Readable } from "node:stream";
import type { Clock } from "@galatea/base";
import type { InvocationReply, InvocationRequest } from "../invocations/index.ts";
import { BodyCopy } from "./body-copy.ts";
import type { CapturedBody } from "./capture-record.ts";
import type { CaptureSettings } from "./capture-settings.ts";
import type { CaptureWriter } from "./capture-writer.ts";
import type { MirrorLease, EndpointMirrorMemory } from "./mirror-memory.ts";
import type { ShadowCalls } from "./shadow-calls.ts";

export interface ShadowTarget {
  readonly calls: ShadowCalls;
  readonly variantName: string;
  /** Fraction of the production variant's requests that are copied, in [0, 1]. */
  readonly part: number;
}

export interface MirroredCallsOptions {
  readonly share: EndpointMirrorMemory;
  readonly variantName: string;
  /** Null without data capture. */
  readonly settings: CaptureSettings | null;
  readonly writer: CaptureWriter;
  /** Null without a shadow variant. */
  readonly shadow: ShadowTarget | null;
  readonly clock: Clock;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  readonly newId: () => string;
}

type Serve = (request: InvocationRequest) => Promise<InvocationReply>;

/** The facts about a captured call that are known before its response. */
interface CallFacts {
  readonly settings: CaptureSettings;
  readonly headers: InvocationRequest["headers"];
  readonly timeMs: number;
  readonly input: BodyCopy;
}

/**
 * Copies calls of a production variant, for data capture and for its shadow variant. A copied request is sent to the
 * shadow after the production variant has read its body. Callers are not delayed, and a copy is dropped if memory is
 * short.
 */
export class MirroredCalls {
  readonly #options: MirroredCallsOptions;

  constructor(options: MirroredCallsOptions) {
    this.#options = options;
  }

  async invoke(request: InvocationRequest, serve: Serve): Promise<InvocationReply> {
    const { settings, shadow, random, share, clock, variantName } = this.#options;
    const captured = settings !== null && random() * 100 < settings.percentage ? settings : null;
    // A session exists on one instance of the production variant; the shadow variant does not know it.
    const isMirrored = shadow !== null && request.session === undefined && random() < shadow.part;
    const mirroredTo = isMirrored ? shadow : null;
    const lease = captured === null && mirroredTo === null ? null : share.open();
    if (lease === null) return await serve(request);
    const input = new BodyCopy(lease);
    const facts =
      captured === null ? null : { settings: captured, headers: request.headers, timeMs: clock.epochMs(), input };
    const isInputKept = mirroredTo !== null || captured?.input === true;
    const body = async () => {
      const value = await request.body();
      lease.retain();
      const ended = () => {
        if (mirroredTo !== null) this.#mirror(request, { to: mirroredTo, input, lease, facts });
        lease.release();
      };
      // An unread request body blocks its connection, so this reads and discards the remaining body.
      return input.tee(value, { ended, abandon: (left: Readable) => void left.resume() });
    };
    try {
      const reply = await serve(isInputKept ? { ...request, body } : request);
      if (facts === null) return reply;
      return { ...reply, body: this.#capture(reply, { variantName, facts, lease: lease.retain() }) };
    } finally {
      lease.release();
    }
  }

  /**
   * Returns a response body that is copied while the caller reads it. Releases the lease when the call is captured or
   * dropped.
   */
  #capture(
    { body, contentType }: InvocationReply,
    of: { readonly variantName: string; readonly facts: CallFacts; readonly lease: MirrorLease },
  ): InvocationReply["body"] {
    const { variantName, facts, lease } = of;
    const { settings, input, headers, timeMs } = facts;
    const { share, writer, newId } = this.#options;
    const output = new BodyCopy(lease);
    const finish = () => {
      const kept = [...(settings.input ? [input] : []), ...(settings.output ? [output] : [])];
      if (!this.#isKept(kept)) return lease.release();
      const call = {
        eventId: newId(),
        inferenceId: headers["x-amzn-sagemaker-inference-id"] ?? null,
        customAttributes: headers["x-amzn-sagemaker-custom-attributes"] ?? null,
        timeMs,
        input: settings.input ? captured(headers["content-type"] ?? null, input) : null,
        output: settings.output ? captured(contentType, output) : null,
      };
      return writer.add({ share, variantName, settings }, call, lease);
    };
    if (!settings.output) {
      finish();
      return body;
    }
    return output.tee(body, { ended: finish, abandon: (value) => void value.destroy() });
  }

  #mirror(
    { headers, targetModel, targetContainer, containerPath, isStreamed }: InvocationRequest,
    copy: {
      readonly to: ShadowTarget;
      readonly input: BodyCopy;
      readonly lease: MirrorLease;
      readonly facts: CallFacts | null;
    },
  ): void {
    const { to, input, facts } = copy;
    if (!this.#isKept([input])) return;
    const lease = copy.lease.retain();
    const { variantName } = to;
    to.calls.send(
      {
        headers,
        targetModel,
        targetContainer,
        ...(containerPath === undefined ? {} : { containerPath }),
        isStreamed,
        pieces: input.pieces,
      },
      {
        take: (reply) =>
          facts === null ? reply.body : this.#capture(reply, { variantName, facts, lease: lease.retain() }),
        ended: () => lease.release(),
      },
    );
  }

  /** Returns true if the copies of all bodies are complete. Otherwise counts a dropped copy. */
  #isKept(bodies: readonly BodyCopy[]): boolean {
    const { share } = this.#options;
    if (bodies.some(({ hasSpace: hasRoom }) => !hasRoom)) share.lose("no-room");
    else if (bodies.some(({ isWhole }) => !isWhole)) share.lose("cut-short");
    else return true;
    return false;
  }
}

const captured = (contentType: string | null, { pieces }: BodyCopy): CapturedBody => ({ contentType, pieces });
