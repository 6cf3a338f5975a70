/** A caller whose request has no signature. */
export interface UnsignedCaller {
  /** The remote address of the connection; undefined once it is closed. */
  readonly remoteAddress: string | undefined;
  /** True if the platform verifies no signatures (`galatea up --open`). */
  readonly isOpen: boolean;
  /** True if the request has one of the owner's keys in another form. */
  readonly hasOwnerKey: boolean;
}

/** The access of a request without a signature, in addition to /ping, /health and URLs with a token of their own. */
export interface UnsignedAccess {
  /** The platform's metrics and the figures of its page, which name no endpoints. */
  readonly platformMetrics: boolean;
  /** The metrics of endpoints and their list on the platform's page, with their names and those of models. */
  readonly endpointMetrics: boolean;
  /** The missing kinds of isolation of this machine, in /health. */
  readonly confinementGaps: boolean;
  /** True if the client may open a CONNECT tunnel to the STS host names, which this platform serves. */
  readonly stsTunnel: boolean;
}

const loopback = /^(?:127\.|::1$|::ffff:127\.)/;

/**
 * Decides for every unsigned request. Programs of this machine, including model code, connect over the loopback
 * interface and get everything that names no endpoint. So do all clients of a reverse proxy on this machine, which has
 * to block /metrics for them.
 */
export function unsignedAccess({ remoteAddress, isOpen, hasOwnerKey }: UnsignedCaller): UnsignedAccess {
  const isOwner = isOpen || hasOwnerKey;
  const isLocal = loopback.test(remoteAddress ?? "");
  return {
    platformMetrics: isOwner || isLocal,
    endpointMetrics: isOwner,
    confinementGaps: isOwner || isLocal,
    stsTunnel: isLocal,
  };
}
