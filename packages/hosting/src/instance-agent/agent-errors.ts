/** The container that a request was for is gone, and had not had the whole of it: another instance may be asked. */
export class NotSent extends Error {
  constructor(options?: ErrorOptions) {
    super("the container ended before it had the request", options);
    this.name = "NotSent";
  }
}

/** The container of a request ended, or did not come back: the same request may succeed another time. */
export class ContainerGone extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ContainerGone";
  }
}

/** The container was not in service again within the time that a request waits for it. */
export class ContainerLate extends ContainerGone {
  constructor() {
    super("the time for it is over");
    this.name = "ContainerLate";
  }
}

/** The agent does not run the instance, or the container is none of it. */
export class UnknownInstance extends Error {
  readonly what: string;

  constructor(what: string) {
    super(`the agent does not run ${what}`);
    this.name = "UnknownInstance";
    this.what = what;
  }
}
