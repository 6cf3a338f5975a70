/** A library that runs model files: what its python-based backend needs, and how it is set up. */
export interface Framework {
  /** The backend's name, and that of `galatea model add`. */
  readonly name: string;
  readonly about: string;
  /** The oldest Python that its packages are built for: "3.11". */
  readonly python: string;
  /** The newest, where it is not known that any will do. */
  readonly newestPython?: string;
  /** What is asked for, as pip reads it; what that needs besides stands in the lock. */
  readonly packages: readonly string[];
  /** Beside this file: versions and sums of all packages, as `scripts/framework_lock.py` writes them. */
  readonly lock: URL;
  /** What the environment takes on disk, at most. */
  readonly diskBytes: number;
  /**
   * Modules that its interpreter imports once, before it forks workers: after that a model's load is a fork and the reading of its file.
   * Null for a library that starts threads when it is imported, and so cannot be forked: each worker imports it.
   */
  readonly imports: readonly string[] | null;
  /** See PythonRunner; false where it is not said. */
  readonly mapsFiles?: true;
}

/** Frameworks as rows; the folders of their runners are in `python/galatea_frameworks`. */
export const frameworks: readonly Framework[] = [
  {
    name: "pytorch",
    about: "TorchScript (model.pt) and torch.export programs (.pt2)",
    python: "3.11",
    // cloudpickle: the scripts that ModelBuilder of SageMaker's SDK generates read their models with it.
    packages: ["torch==2.15.0", "numpy", "cloudpickle"],
    lock: new URL("./gen/pytorch-lock.json", import.meta.url),
    diskBytes: 5 * 2 ** 30,
    // Held to one thread (see thread_pools.py) torch 2.15 imports with one: it may be forked.
    imports: ["torch", "galatea_frameworks.pytorch.warm", "galatea_frameworks.pytorch_script.warm"],
    mapsFiles: true,
  },
  {
    name: "sklearn",
    about: "scripts that serve models of scikit-learn",
    python: "3.11",
    // flask: published scripts return its responses, as SageMaker's container has it.
    packages: ["scikit-learn==1.7.2", "numpy", "scipy", "pandas", "joblib", "cloudpickle", "flask"],
    lock: new URL("./gen/sklearn-lock.json", import.meta.url),
    diskBytes: 2 ** 29,
    // Its own threads begin with a model that asks for several.
    imports: ["sklearn", "joblib", "galatea_frameworks.sklearn.warm"],
  },
  {
    name: "xgboost",
    about: "scripts that serve models of XGBoost",
    python: "3.11",
    packages: [
      // The version of SageMaker's container, and the last that reads the binary form of models; on x86 the build without CUDA's libraries.
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
    // Held to one thread XGBoost computes with the thread that asks, and starts none.
    imports: ["xgboost", "galatea_frameworks.xgboost_script.warm"],
  },
  {
    name: "dali",
    about: "NVIDIA DALI pipelines (model.dali, dali.py), on the CPU",
    python: "3.11",
    packages: ["nvidia-dali-cuda120==2.4.0", "numpy"],
    lock: new URL("./gen/dali-lock.json", import.meta.url),
    diskBytes: 2 * 2 ** 30,
    // A pipeline has threads of its own; with the last pipeline they end, so an interpreter that ran one may be forked.
    imports: ["nvidia.dali", "galatea_frameworks.dali.warm"],
  },
  {
    name: "onnxruntime-gpu",
    about:
      "ONNX models on NVIDIA GPUs (KIND_GPU, accelerators cuda and tensorrt); needs NVIDIA's driver for CUDA 13, and TensorRT 10 for tensorrt",
    python: "3.11",
    newestPython: "3.14",
    // Of one version with the library for the CPU: what a model answers does not depend on where it was completed.
    packages: ["onnxruntime-gpu[cuda,cudnn]==1.30.0"],
    lock: new URL("./gen/onnxruntime-gpu-lock.json", import.meta.url),
    diskBytes: 4 * 2 ** 30,
    // Its library is opened by processes of the backend `onnxruntime`; no Python runs models.
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
    // TensorFlow 2.21 imports with one thread, and may be forked until its first graph. How it logs is decided before it is imported.
    imports: ["galatea_frameworks.tensorflow.warm", "tensorflow", "galatea_frameworks.tensorflow_serving.warm"],
  },
  {
    name: "tensorflow-gpu",
    about: "the same on NVIDIA GPUs (KIND_GPU), on x86; needs NVIDIA's driver for CUDA 12",
    python: "3.11",
    newestPython: "3.13",
    packages: ["tensorflow[and-cuda]==2.21.0 ; platform_machine == 'x86_64'", "numpy"],
    lock: new URL("./gen/tensorflow-gpu-lock.json", import.meta.url),
    diskBytes: 8 * 2 ** 30,
    // As the one for the CPU; CUDA begins with a worker's first look for GPUs.
    imports: ["galatea_frameworks.tensorflow.warm", "tensorflow"],
  },
];

/** The frameworks that our runners need, by the names of their backends. */
const frameworksOfRunners: ReadonlyMap<string, string> = new Map([
  ["pytorch", "pytorch"],
  ["pytorch_script", "pytorch"],
  ["sklearn", "sklearn"],
  ["xgboost_script", "xgboost"],
  ["dali", "dali"],
  ["tensorflow", "tensorflow"],
  ["tensorflow_serving", "tensorflow"],
]);

/** The framework that a runner of ours needs; null for a backend that none of ours runs. */
export function frameworkOfRunner(backend: string): Framework | null {
  const name = frameworksOfRunners.get(backend);
  return name === undefined ? null : frameworkNamed(name);
}

/** Frameworks that run a backend's models on GPUs, where the one for the CPU cannot. */
const frameworksForGpus: ReadonlyMap<string, string> = new Map([["tensorflow", "tensorflow-gpu"]]);

/** The build for GPUs of what a runner of ours needs; null for one that needs no other than on the CPU. */
export function gpuFrameworkOfRunner(backend: string): Framework | null {
  const name = frameworksForGpus.get(backend);
  return name === undefined ? null : frameworkNamed(name);
}

export function frameworkNamed(name: string): Framework | null {
  return frameworks.find((row) => row.name === name) ?? null;
}
