import type { Clock } from "@galatea/base";
import type { Credential } from "../../signing/index.ts";
import { createIamId, type IamOptions } from "../iam/index.ts";

export interface StsSessionsOptions {
  readonly clock: Clock;
  readonly randomBytes: IamOptions["randomBytes"];
  /** Maximum number of sessions. Above it, the session that expires first is removed. */
  readonly sessionsMax: number;
}

export interface SessionIdentity {
  readonly roleName: string;
  readonly roleId: string;
  readonly sessionName: string;
}

/** The caller that opens a session. */
export interface SessionCaller {
  readonly accountId: string;
  readonly accessKeyId: string | null;
}

export interface Session extends Credential, SessionIdentity {
  /**
   * The long-lived key that opened the session, directly or through other sessions; null if signatures are not
   * verified.
   */
  readonly openedBy: string | null;
  readonly expiresMs: number;
  readonly sessionToken: string;
}

/** The sessions of STS, each with the temporary credentials that STS has issued for it. */
export class StsSessions {
  readonly #options: StsSessionsOptions;
  readonly #sessions = new Map<string, Session>();

  constructor(options: StsSessionsOptions) {
    this.#options = options;
  }

  /**
   * Returns the credentials that `AssumeRole` or `GetSessionToken` issued for this key id, even if they have expired.
   */
  credential(accessKeyId: string): Credential | undefined {
    return this.#sessions.get(accessKeyId);
  }

  findActive(accessKeyId: string | null): Session | null {
    const session = accessKeyId === null ? undefined : this.#sessions.get(accessKeyId);
    return session !== undefined && session.expiresMs > this.#options.clock.epochMs() ? session : null;
  }

  open(identity: SessionIdentity, { accountId, accessKeyId }: SessionCaller, durationSeconds: number): Session {
    this.#removeFirstToExpire();
    const { clock, randomBytes } = this.#options;
    const session = {
      ...identity,
      openedBy: this.findActive(accessKeyId)?.openedBy ?? accessKeyId,
      accountId,
      accessKeyId: createIamId("ASIA", randomBytes).slice(0, 20),
      secretAccessKey: Buffer.from(randomBytes(30)).toString("base64"),
      sessionToken: Buffer.from(randomBytes(96)).toString("base64"),
      expiresMs: clock.epochMs() + durationSeconds * 1000,
    };
    this.#sessions.set(session.accessKeyId, session);
    return session;
  }

  /** Ends the sessions that these long-lived keys have opened. */
  endSessionsOpenedBy(keys: ReadonlySet<string>): void {
    for (const { accessKeyId, openedBy } of this.#sessions.values())
      if (openedBy !== null && keys.has(openedBy)) this.#sessions.delete(accessKeyId);
  }

  #removeFirstToExpire(): void {
    const { clock, sessionsMax } = this.#options;
    if (this.#sessions.size < sessionsMax) return;
    const nowMs = clock.epochMs();
    let first: Session | null = null;
    for (const session of this.#sessions.values()) {
      if (session.expiresMs <= nowMs) this.#sessions.delete(session.accessKeyId);
      else if (first === null || session.expiresMs < first.expiresMs) first = session;
    }
    if (this.#sessions.size >= sessionsMax && first !== null) this.#sessions.delete(first.accessKeyId);
  }
}
