/** The container ended before it had the whole request: the request is safe to send to another instance. */
export class NotSent extends Error {
  constructor(options?: ErrorOptions) {
    super("the container ended before it had the request", options);
    this.name = "NotSent";
  }
}

/** The container ended during a request, or did not restart in time. The request may have been executed; a retry may succeed. */
export class ContainerConnectionLost extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ContainerGone";
  }
}

/** The container did not restart within `restartWaitMsMax`. */
export class ContainerTimeout extends ContainerConnectionLost {
  constructor() {
    super("the time for it is over");
    this.name = "ContainerLate";
  }
}

/** The agent does not run the instance, or the instance has no such container. */
export class UnknownInstance extends Error {
  readonly what: string;

  constructor(what: string) {
    super(`the agent does not run ${what}`);
    this.name = "UnknownInstance";
    this.what = what;
  }
}
