import type { Readable } from "node:stream";
import type { Clock } from "@galatea/base";
import type { InvocationReply, InvocationRequest } from "../invocations/index.ts";
import { BodyCopy } from "./body-copy.ts";
import type { CapturedBody } from "./capture-record.ts";
import type { CaptureSettings } from "./capture-settings.ts";
import type { CaptureWriter } from "./capture-writer.ts";
import type { MirrorLease, MirrorShare } from "./mirror-account.ts";
import type { ShadowCalls } from "./shadow-calls.ts";

export interface WatchedShadow {
  readonly calls: ShadowCalls;
  readonly variantName: string;
  /** Of the production variant's requests, in [0, 1]. */
  readonly part: number;
}

export interface CallWatchOptions {
  readonly share: MirrorShare;
  readonly variantName: string;
  /** Null where nothing is captured. */
  readonly settings: CaptureSettings | null;
  readonly writer: CaptureWriter;
  /** Null where nothing is sent to another variant. */
  readonly shadow: WatchedShadow | null;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly newId: () => string;
}

type Serve = (request: InvocationRequest) => Promise<InvocationReply>;

/** What is known of a call that is captured before its answer. */
interface CallFacts {
  readonly settings: CaptureSettings;
  readonly headers: InvocationRequest["headers"];
  readonly timeMs: number;
  readonly input: BodyCopy;
}

/**
 * Watches the calls of a production variant: some of them are captured, and some are sent to its shadow variant, too, when their bodies
 * have passed. A call is served as it would be without: bodies pass on as they come, and what cannot be kept of them is given up.
 */
export class CallWatch {
  readonly #options: CallWatchOptions;

  constructor(options: CallWatchOptions) {
    this.#options = options;
  }

  async invoke(request: InvocationRequest, serve: Serve): Promise<InvocationReply> {
    const { settings, shadow, random, share, clock, variantName } = this.#options;
    const captured = settings !== null && random() * 100 < settings.percentage ? settings : null;
    // A session is held by one instance, which is not the shadow's.
    const isMirrored = shadow !== null && request.session === undefined && random() < shadow.part;
    const mirroredTo = isMirrored ? shadow : null;
    const lease = captured === null && mirroredTo === null ? null : share.open();
    if (lease === null) return await serve(request);
    const input = new BodyCopy(lease);
    const facts =
      captured === null ? null : { settings: captured, headers: request.headers, timeMs: clock.epochMs(), input };
    const isInputKept = mirroredTo !== null || captured?.input === true;
    const body = async () => {
      const given = await request.body();
      lease.retain();
      const ended = () => {
        if (mirroredTo !== null) this.#mirror(request, { to: mirroredTo, input, lease, facts });
        lease.release();
      };
      // What is left of a request that nobody takes has to be read, for its connection's sake.
      return input.watch(given, { ended, abandon: (left: Readable) => void left.resume() });
    };
    try {
      const reply = await serve(isInputKept ? { ...request, body } : request);
      if (facts === null) return reply;
      return { ...reply, body: this.#capture(reply, { variantName, facts, lease: lease.retain() }) };
    } finally {
      lease.release();
    }
  }

  /** The answer's body, to be taken instead of its own. Lets the lease go when the call is captured or given up. */
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
    return output.watch(body, { ended: finish, abandon: (given) => void given.destroy() });
  }

  #mirror(
    { headers, targetModel, targetContainer, containerPath, isStreamed }: InvocationRequest,
    copy: {
      readonly to: WatchedShadow;
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

  /** Whether bodies were kept whole; if not, that is counted. */
  #isKept(bodies: readonly BodyCopy[]): boolean {
    const { share } = this.#options;
    if (bodies.some(({ hasRoom }) => !hasRoom)) share.lose("no-room");
    else if (bodies.some(({ isWhole }) => !isWhole)) share.lose("cut-short");
    else return true;
    return false;
  }
}

const captured = (contentType: string | null, { pieces }: BodyCopy): CapturedBody => ({ contentType, pieces });
