/** A library that runs model files in a Python environment, such as PyTorch. */
export interface Framework {
  /** Name of the backend, and argument of `galatea model add`. */
  readonly name: string;
  readonly about: string;
  /** The oldest supported Python version, such as "3.11". */
  readonly python: string;
  /** The newest supported Python version; absent if no limit is known. */
  readonly newestPython?: string;
  /** Requirements in pip's format. The lock file also contains their dependencies. */
  readonly packages: readonly string[];
  /** Lock file with versions and hashes of all packages, written by `scripts/framework_lock.py`. */
  readonly lock: URL;
  /** Upper bound of the environment's size on disk in bytes. */
  readonly diskBytes: number;
  /**
   * Modules that a zygote imports before it forks workers, so that a load only has to fork and read the model file. Null for a library that
   * starts threads when it is imported: such a process cannot be forked, and each worker imports the library itself.
   */
  readonly imports: readonly string[] | null;
  /** Value of `PythonRunner.mapsFiles`; absent means false. */
  readonly mapsFiles?: true;
}

/** The supported frameworks. Their programs are in `python/galatea_frameworks`. */
export const frameworks: readonly Framework[] = [
  {
    name: "pytorch",
    about: "TorchScript (model.pt) and torch.export programs (.pt2)",
    python: "3.11",
    // cloudpickle is needed by scripts that ModelBuilder of SageMaker's SDK generates.
    packages: ["torch==2.15.0", "numpy", "cloudpickle"],
    lock: new URL("./gen/pytorch-lock.json", import.meta.url),
    diskBytes: 5 * 2 ** 30,
    // With one thread (see thread_pools.py), torch 2.15 starts no thread when it is imported, and may be forked.
    imports: ["torch", "galatea_frameworks.pytorch.warm_up", "galatea_frameworks.pytorch_script.warm_up"],
    mapsFiles: true,
  },
  {
    name: "sklearn",
    about: "scripts that serve models of scikit-learn",
    python: "3.11",
    // flask is needed by published scripts that return flask responses; SageMaker's container has it.
    packages: ["scikit-learn==1.7.2", "numpy", "scipy", "pandas", "joblib", "cloudpickle", "flask"],
    lock: new URL("./gen/sklearn-lock.json", import.meta.url),
    diskBytes: 2 ** 29,
    // scikit-learn starts threads only for a model that requests several.
    imports: ["sklearn", "joblib", "galatea_frameworks.sklearn.warm_up"],
  },
  {
    name: "xgboost",
    about: "scripts that serve models of XGBoost",
    python: "3.11",
    packages: [
      // This version is the one in SageMaker's container, and the last one that reads XGBoost's binary model format. On x86 the build
      // without CUDA's libraries is used.
      "xgboost-cpu==3.0.5 ; platform_machine == 'x86_64'",
      "xgboost==3.0.5 ; platform_machine == 'aarch64'",
      "scikit-learn==1.7.2",
      "numpy",
      "scipy",
      "pandas<3",
      "joblib",
      "cloudpickle",
      "flask",
    ],
    lock: new URL("./gen/xgboost-lock.json", import.meta.url),
    diskBytes: 2 ** 29,
    // With one thread, XGBoost computes in the calling thread and starts none.
    imports: ["xgboost", "galatea_frameworks.xgboost_script.warm_up"],
  },
  {
    name: "dali",
    about: "NVIDIA DALI pipelines (model.dali, dali.py), on the CPU",
    python: "3.11",
    packages: ["nvidia-dali-cuda120==2.4.0", "numpy"],
    lock: new URL("./gen/dali-lock.json", import.meta.url),
    diskBytes: 2 * 2 ** 30,
    // DALI's threads end with the last pipeline, so an interpreter that ran a pipeline may be forked.
    imports: ["nvidia.dali", "galatea_frameworks.dali.warm_up"],
  },
  {
    name: "onnxruntime-gpu",
    about:
      "ONNX models on NVIDIA GPUs (KIND_GPU, accelerators cuda and tensorrt); needs NVIDIA's driver for CUDA 13, and TensorRT 10 for tensorrt",
    python: "3.11",
    newestPython: "3.14",
    // This version equals that of the CPU library, so that a model's outputs do not depend on the machine.
    packages: ["onnxruntime-gpu[cuda,cudnn]==1.30.0"],
    lock: new URL("./gen/onnxruntime-gpu-lock.json", import.meta.url),
    diskBytes: 4 * 2 ** 30,
    // Processes of the backend `onnxruntime` open the library; no Python process runs models.
    imports: ["onnxruntime"],
  },
  {
    name: "tensorflow",
    about: "TensorFlow GraphDefs (model.graphdef) and SavedModels (model.savedmodel), on the CPU",
    python: "3.11",
    newestPython: "3.13",
    packages: [
      "tensorflow-cpu==2.21.0 ; platform_machine == 'x86_64'",
      "tensorflow==2.21.0 ; platform_machine == 'aarch64'",
      "numpy",
    ],
    lock: new URL("./gen/tensorflow-lock.json", import.meta.url),
    diskBytes: 2 * 2 ** 30,
    // TensorFlow 2.21 has one thread after its import, and may be forked before its first graph. Its logging must be configured before the
    // import.
    imports: ["galatea_frameworks.tensorflow.warm_up", "tensorflow", "galatea_frameworks.tensorflow_serving.warm_up"],
  },
  {
    name: "tensorflow-gpu",
    about: "TensorFlow models on NVIDIA GPUs (KIND_GPU), on x86; needs NVIDIA's driver for CUDA 12",
    python: "3.11",
    newestPython: "3.13",
    packages: ["tensorflow[and-cuda]==2.21.0 ; platform_machine == 'x86_64'", "numpy"],
    lock: new URL("./gen/tensorflow-gpu-lock.json", import.meta.url),
    diskBytes: 8 * 2 ** 30,
    // The constraints are those of the CPU package. CUDA starts only when a worker first searches for GPUs.
    imports: ["galatea_frameworks.tensorflow.warm_up", "tensorflow"],
  },
];

/** Frameworks by the name of the backend that uses them. */
const frameworksOfRunners: ReadonlyMap<string, string> = new Map([
  ["pytorch", "pytorch"],
  ["pytorch_script", "pytorch"],
  ["sklearn", "sklearn"],
  ["xgboost_script", "xgboost"],
  ["dali", "dali"],
  ["tensorflow", "tensorflow"],
  ["tensorflow_serving", "tensorflow"],
]);

/** Returns the framework of a backend; null for a backend without one. */
export function backendFramework(backend: string): Framework | null {
  const name = frameworksOfRunners.get(backend);
  return name === undefined ? null : frameworkByName(name);
}

/** Frameworks for models on GPUs, by backend. Contains only backends whose framework differs from the one for the CPU. */
const frameworksForGpus: ReadonlyMap<string, string> = new Map([["tensorflow", "tensorflow-gpu"]]);

/** Returns the framework for a backend's models on GPUs; null if the framework for the CPU is used. */
export function backendGpuFramework(backend: string): Framework | null {
  const name = frameworksForGpus.get(backend);
  return name === undefined ? null : frameworkByName(name);
}

export function frameworkByName(name: string): Framework | null {
  return frameworks.find((row) => row.name === name) ?? null;
}
