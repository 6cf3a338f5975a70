import { type ModelSource, pythonConfig } from "./model-source.ts";

/** Typical code of a model, and the expression that it returns. */
interface Habit {
  /** Code at the top of model.py. */
  readonly before?: string;
  /** The body of `initialize(self, args)`; absent for a model without it. */
  readonly initialize?: string;
  /** The body of `report(self, request)`. The response is the repr of its result. */
  readonly report: string;
  readonly files?: Readonly<Record<string, string>>;
}

const indented = (body: string) => body.trim().replaceAll("\n", "\n        ");

function source({ before = "", initialize, report, files = {} }: Habit): ModelSource {
  const program = `import numpy as np
import triton_python_backend_utils as pb_utils
${before}


class TritonPythonModel:
${initialize === undefined ? "" : `    def initialize(self, args):\n        ${indented(initialize)}\n\n`}    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        said = np.array([repr(self.report(request))], dtype=object)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", said)])

    def report(self, request):
        ${indented(report)}
`;
  const config = pythonConfig({ inputs: [["IN", "FP32", [-1]]], outputs: [["OUT", "STRING", [-1]]] });
  return { config, program: null, files: { "1/model.py": program, ...files } };
}

/** Typical code of real repositories besides tensors, by the name of the model. */
const habits: Readonly<Record<string, Habit>> = {
  logs: {
    before: 'import logging\n\nlogging.basicConfig(level=logging.INFO)\nlog = logging.getLogger("habit")',
    report: 'log.info("asked")\nlog.error("100%% %s", "asked")\nreturn log.getEffectiveLevel()',
  },
  logs_to_triton: {
    report: `logger = pb_utils.Logger
for say in (logger.log_info, logger.log_warn, logger.log_error, logger.log_verbose):
    say("asked: ünï")
logger.log("plain")
logger.log("as a warning", logger.WARNING)
return sorted(name for name in dir(logger) if not name.startswith("_"))`,
  },
  prints: {
    before: "import sys",
    initialize: 'print("ready", flush=True)',
    report: `print("asked", 1, end="")
print("to the other", file=sys.stderr, flush=True)
sys.stdout.write("written\\n")
sys.stdout.flush()
return "printed"`,
  },
  threads: {
    before: "import threading\nfrom concurrent.futures import ThreadPoolExecutor",
    initialize: "self.pool = ThreadPoolExecutor(4)",
    report: `seen = []
threads = [threading.Thread(target=seen.append, args=(number,)) for number in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
return sorted(seen), list(self.pool.map(lambda number: number * number, range(6)))`,
  },
  thread_of_its_own: {
    before: "import queue\nimport threading",
    initialize: `self.asked, self.answered = queue.Queue(), queue.Queue()
def work():
    while True:
        self.answered.put(self.asked.get() + 1)
threading.Thread(target=work, daemon=True).start()`,
    report: "self.asked.put(41)\nreturn self.answered.get(timeout=20)",
  },
  thread_names: {
    before: "import threading",
    report: "return threading.current_thread() is threading.main_thread()",
  },
  subprocesses: {
    before: "import subprocess",
    report: `done = subprocess.run(["sh", "-c", "cat; exit 3"], input=b"through", stdout=subprocess.PIPE)
return done.returncode, done.stdout, subprocess.check_output("echo shell", shell=True)`,
  },
  forks: {
    before: "import os",
    report: `child = os.fork()
if child == 0:
    os._exit(7)
return os.waitpid(child, 0)[1] >> 8`,
  },
  processes: {
    before: "import multiprocessing\n\n\ndef work(number, answers):\n    answers.put(number * 2)",
    report: `context = multiprocessing.get_context("fork")
answers = context.Queue()
process = context.Process(target=work, args=(21, answers))
process.start()
answer = answers.get(timeout=20)
process.join()
return answer, process.exitcode`,
  },
  sibling: {
    before: "import helper\nfrom package_of_it import WORD\nfrom package_of_it.inner import twice",
    report: "return helper.NAME, WORD, twice(4)",
    files: {
      "1/helper.py": 'NAME = "helper"\n',
      "1/package_of_it/__init__.py": 'WORD = "package"\n',
      "1/package_of_it/inner.py": "def twice(x):\n    return 2 * x\n",
    },
  },
  sibling_late: { report: "import late\nreturn late.__name__, late.NAME", files: { "1/late.py": 'NAME = "late"\n' } },
  /** Another model has a file with this name. */
  sibling_of_the_same_name: {
    before: "import helper",
    report: "return helper.NAME",
    files: { "1/helper.py": 'NAME = "another helper"\n' },
  },
  path_of_its_own: {
    before:
      'import os\nimport sys\n\nsys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shared"))\nimport above',
    report: "return above.NAME",
    files: { "shared/above.py": 'NAME = "above"\n' },
  },
  reads_beside_itself: {
    before: "import os\n\nhere = os.path.dirname(os.path.realpath(__file__))",
    initialize:
      'self.path = os.path.join(args["model_repository"], args["model_version"], "labels.txt")\nself.labels = open(self.path).read().split()',
    report:
      'return self.labels, open(os.path.join(here, "labels.txt")).read(), os.path.samefile(self.path, here + "/labels.txt")',
    files: { "1/labels.txt": "cat dog\n" },
  },
  writes_beside_itself: {
    before: "import os\nimport tempfile",
    report: `beside = os.path.join(os.path.dirname(__file__), "written.txt")
with open(beside, "w") as file:
    file.write("kept")
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("gone")
    file.flush()
    return open(beside).read(), open(file.name).read()`,
  },
  says_where_it_is: {
    before: "import os\nimport sys",
    report:
      "return __name__, __package__, __file__, __name__ in sys.modules, os.path.isabs(os.getcwd()), os.path.dirname(__file__) in sys.path",
  },
  runs_as_main: {
    before: 'WAS_MAIN = False\nif __name__ == "__main__":\n    WAS_MAIN = True',
    report: "return WAS_MAIN",
  },
  pickles: {
    before: "import pickle\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass Point:\n    x: int",
    report: "return pickle.loads(pickle.dumps(Point(3))).x, Point.__module__ == __name__",
  },
  environment: {
    before: 'import os\n\nos.environ["HABIT"] = "set at the top"',
    initialize: 'os.environ["HABIT_LATER"] = "set in initialize"',
    report:
      'return os.environ["HABIT"], os.getenv("HABIT_LATER"), os.environ.get("HABIT_OF_ANOTHER"), "PATH" in os.environ',
  },
  environment_of_another: {
    before: 'import os\n\nos.environ["HABIT_OF_ANOTHER"] = "mine"',
    report: 'return os.environ["HABIT_OF_ANOTHER"], os.environ.get("HABIT")',
  },
  counts: {
    before: "COUNT = 0",
    initialize: "self.count = 0",
    report: "global COUNT\nCOUNT += 1\nself.count += 10\nreturn COUNT, self.count",
  },
  arguments: {
    before: "import json",
    initialize: "self.args = args",
    report: `config = json.loads(self.args["model_config"])
output = pb_utils.get_output_config_by_name(config, "OUT")
return (
    sorted(self.args),
    [self.args[key] for key in ("model_name", "model_version", "model_instance_kind", "model_instance_name", "model_instance_device_id")],
    {key: type(value).__name__ for key, value in self.args.items()},
    pb_utils.triton_string_to_numpy(output["data_type"]),
    pb_utils.get_input_config_by_name(config, "IN")["dims"],
    pb_utils.get_input_config_by_name(config, "NOBODY"),
)`,
  },
  without_initialize: { report: 'return hasattr(self, "initialize"), self.__dict__' },
  asyncio_inside: {
    before: "import asyncio\n\n\nasync def work(number):\n    await asyncio.sleep(0)\n    return number + 1",
    report: "return asyncio.run(work(1)), asyncio.new_event_loop().run_until_complete(work(2))",
  },
  signals: {
    before: "import os\nimport signal",
    initialize: "self.seen = []\nsignal.signal(signal.SIGUSR1, lambda number, frame: self.seen.append(number))",
    report: "os.kill(os.getpid(), signal.SIGUSR1)\nreturn [int(number) for number in self.seen]",
  },
  seeds: {
    before: "import random",
    initialize: "np.random.seed(7)\nrandom.seed(7)",
    report: 'return "%.6f %.6f" % (np.random.rand(), random.random())',
  },
  warns: {
    before: 'import warnings\n\nwarnings.filterwarnings("ignore")',
    report: 'warnings.warn("old")\nwith np.errstate(all="ignore"):\n    return str(np.float32(1) / np.float32(0))',
  },
  recurses: {
    before: "import sys\n\n\ndef depth(n):\n    return 0 if n == 0 else 1 + depth(n - 1)",
    initialize: "sys.setrecursionlimit(5000)",
    report: "return depth(3000)",
  },
  inputs: {
    report: `tensor = pb_utils.get_input_tensor_by_name(request, "IN")
array = tensor.as_numpy()
array *= 2
again = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
return (
    tensor.name(), tensor.shape(), tensor.is_cpu(), array.dtype.str, array.flags.writeable,
    array.tolist(), again.tolist(), pb_utils.get_input_tensor_by_name(request, "NOBODY"), len(request.inputs()),
)`,
  },
  keeps_inputs: {
    initialize: "self.kept = []",
    report: "self.kept.append(request.inputs()[0].as_numpy())\nreturn [array.tolist() for array in self.kept]",
  },
  keeps_requests: {
    initialize: "self.kept = []",
    report:
      "self.kept.append(request)\nreturn [(each.request_id(), each.inputs()[0].as_numpy().tolist()) for each in self.kept]",
  },
  raises_without_text: { report: "raise ValueError" },
  raises_assertion: { report: 'assert 1 == 2, "one is not two"' },
  raises_stop: { report: "raise StopIteration" },
  raises_key: { report: 'return {}["missing"]' },
  raises_from: {
    report: 'try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise RuntimeError("while dividing") from error',
  },
  raises_unspeakable: {
    before: "class Unspeakable(Exception):\n    def __str__(self):\n        raise ValueError('no text')",
    report: "raise Unspeakable()",
  },
  raises_too_deep: { before: "def deeper():\n    return deeper()", report: "return deeper()" },
};

/** Returns the array that CODE creates. */
const arrays: ModelSource = {
  config: pythonConfig({ inputs: [["CODE", "STRING", [1]]], outputs: [["OUT", "FP32", [-1]]] }),
  program: null,
  files: {
    "1/model.py": `import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        code = [pb_utils.get_input_tensor_by_name(request, "CODE").as_numpy()[0].decode() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", eval(each))]) for each in code]
`,
  },
};

/** Returns a model whose `execute` returns something other than a list of responses. */
const returns = (text: string): ModelSource => ({
  config: pythonConfig({ inputs: [["IN", "FP32", [-1]]], outputs: [["OUT", "FP32", [-1]]] }),
  program: null,
  files: {
    "1/model.py": `import numpy as np
import triton_python_backend_utils as pb_utils


def answer(request):
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", request.inputs()[0].as_numpy())])


class Base:
    def execute(self, requests):
        return ${text}


class TritonPythonModel(Base):
    def __init__(self):
        self.made = True
`,
  },
});

export const returned = {
  returns_a_tuple: "tuple(answer(request) for request in requests)",
  returns_a_generator: "(answer(request) for request in requests)",
  returns_none: "None",
  returns_none_in_a_list: "[None for request in requests]",
  returns_a_dict: "{0: answer(requests[0])}",
  returns_one_response: "answer(requests[0])",
  returns_too_many: "[answer(request) for request in requests] * 2",
  returns_arrays: "[request.inputs()[0].as_numpy() for request in requests]",
} as const;

export const habitNames = Object.keys(habits);

export const habitModels: Readonly<Record<string, ModelSource>> = {
  ...Object.fromEntries(Object.entries(habits).map(([name, habit]) => [name, source(habit)])),
  ...Object.fromEntries(Object.entries(returned).map(([name, text]) => [name, returns(text)])),
  arrays,
};
