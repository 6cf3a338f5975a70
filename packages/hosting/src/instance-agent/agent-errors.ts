/** The error if the container did not receive the whole request. It is safe to send the request to another instance. */
export class RequestNotSent extends Error {
  constructor(options?: ErrorOptions) {
    super("the container did not receive the request", options);
    this.name = "RequestNotSent";
  }
}

/**
 * The error if the container terminated during a request, or did not restart in time. The container may have processed
 * the request; a retry may succeed.
 */
export class ContainerConnectionLost extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ContainerConnectionLost";
  }
}

/** The error if the container did not restart within `restartWaitMsMax`. */
export class ContainerTimeout extends ContainerConnectionLost {
  constructor() {
    super("the container did not restart in time");
    this.name = "ContainerTimeout";
  }
}

/** The error if the agent does not run the instance, or the instance has no such container. */
export class UnknownInstance extends Error {
  readonly what: string;

  constructor(what: string) {
    super(`the agent does not run ${what}`);
    this.name = "UnknownInstance";
    this.what = what;
  }
}
