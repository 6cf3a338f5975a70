/** A caller whose request has no signature. */
export interface UnsignedCaller {
  /** The address of the connection's other end; undefined once it is closed. */
  readonly remoteAddress: string | undefined;
  /** True if the platform verifies no signatures (`galatea up --open`). */
  readonly isOpen: boolean;
  /** True if the request brings one of the owner's keys in another way. */
  readonly bringsKey: boolean;
}

/** What the platform gives a caller whose request has no signature, beside /ping, /health and links that carry a token of their own. */
export interface UnsignedAccess {
  /** The platform's metrics and the figures of its page, which name no endpoints. */
  readonly platformMetrics: boolean;
  /** The metrics of endpoints and their list on the platform's page, with their names and those of models. */
  readonly endpointMetrics: boolean;
  /** What this machine leaves unconfined, in /health. */
  readonly confinementGaps: boolean;
  /** A CONNECT to the hosts of STS, which this platform answers itself. */
  readonly stsTunnel: boolean;
}

const loopback = /^(?:127\.|::1$|::ffff:127\.)/;

/**
 * Decides for every such caller. Programs of this machine, model code among them, connect over the loopback interface and are trusted with what
 * names no endpoint. So are all clients of a reverse proxy on this machine, which is to withhold /metrics from them.
 */
export function unsignedAccess({ remoteAddress, isOpen, bringsKey }: UnsignedCaller): UnsignedAccess {
  const isOwner = isOpen || bringsKey;
  const isLocal = loopback.test(remoteAddress ?? "");
  return {
    platformMetrics: isOwner || isLocal,
    endpointMetrics: isOwner,
    confinementGaps: isOwner || isLocal,
    stsTunnel: isLocal,
  };
}
