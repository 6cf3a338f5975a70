import type { EnvOptions, FrameworkOptions, ServeOptions, UpOptions } from "./options.ts";

// Each command imports only what it needs: a server does not load the platform, nor the platform the server.

export async function runServe(options: ServeOptions): Promise<number> {
  return (await import("./serve.ts")).serve(options);
}

export async function runUp(options: UpOptions): Promise<number> {
  return (await import("./up.ts")).up(options);
}

export async function runEnv(options: EnvOptions): Promise<number> {
  return (await import("./env.ts")).env(options);
}

export async function runValidate(directory: string | undefined): Promise<number> {
  return (await import("./validate.ts")).validate(directory);
}

export async function runModel(options: FrameworkOptions): Promise<number> {
  return (await import("./frameworks.ts")).model(options);
}
