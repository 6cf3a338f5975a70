import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { chooseArchiveModel, findArchiveModel } from "./archive-model.ts";
import { dependencyOrder } from "./dependency-order.ts";
import { DirectoryCatalog } from "./directory-catalog.ts";
import { composingModels } from "./model-files.ts";
import { checkRepositoryPath } from "./check-repository-path.ts";
import { validateRepository, type BackendCheck } from "./validate-repository.ts";
import { chooseVersions, parseVersionDirectory } from "./version-policy.ts";

const io = 'input { name: "I" data_type: TYPE_FP32 dims: 4 } output { name: "O" data_type: TYPE_FP32 dims: 4 }';
const ensembleIo = 'input { name: "X" data_type: TYPE_FP32 dims: 4 } output { name: "Y" data_type: TYPE_FP32 dims: 4 }';
const step = (model: string) =>
  `step { model_name: "${model}" model_version: -1 input_map { key: "I" value: "X" } output_map { key: "O" value: "Y" } }`;
const ensemble = (model: string) => `platform: "ensemble" ${ensembleIo} ensemble_scheduling { ${step(model)} }`;

/** Creates a directory with these files and removes it after the test. A path that ends in "/" is an empty directory. */
async function folder(t: TestContext, files: Readonly<Record<string, string>>): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), "galatea-repository-"));
  t.after(() => rm(root, { recursive: true }));
  for (const [path, content] of Object.entries(files)) {
    await mkdir(path.endsWith("/") ? join(root, path) : dirname(join(root, path)), { recursive: true });
    if (!path.endsWith("/")) await writeFile(join(root, path), content);
  }
  return root;
}

function catalog(t: TestContext, repositoryDirectories: readonly string[], more: object = {}): DirectoryCatalog {
  const created = new DirectoryCatalog({
    repositoryDirectories,
    mapping: null,
    configName: "",
    autoComplete: true,
    gpuCount: 0,
    overrideDirectory: join(repositoryDirectories[0]!, "..", `${basename(repositoryDirectories[0]!)}-overrides`),
    overrideBytesMax: Infinity,
    ...more,
  });
  t.after(() => created[Symbol.asyncDispose]());
  return created;
}

suite("versions", () => {
  test("are decimal directories without leading zeros", () => {
    const names = ["1", "10", "01", "0", "v2", "3.0", "-1", "", "99999999999999999999"];
    assert.deepEqual(names.map(parseVersionDirectory), [1, 10, null, 0, null, null, null, null, null]);
  });
  test("are chosen by the policy, in numeric order", () => {
    const present = [10, 9, 2, 1];
    assert.deepEqual(chooseVersions({ kind: "latest", versionCount: 1 }, present), [10]);
    assert.deepEqual(chooseVersions({ kind: "latest", versionCount: 3 }, present), [2, 9, 10]);
    assert.deepEqual(chooseVersions({ kind: "all" }, present), [1, 2, 9, 10]);
    assert.deepEqual(chooseVersions({ kind: "specific", versions: [9, 1, 7] }, present), [1, 9]);
  });
});

suite("the order of dependencies", () => {
  test("composing models come before their ensembles", () => {
    const { rounds, failures } = dependencyOrder(
      new Map([
        ["outer", ["inner", "b"]],
        ["inner", ["a", "a"]],
        ["a", []],
        ["b", []],
      ]),
    );
    assert.deepEqual(rounds, [["a", "b"], ["inner"], ["outer"]]);
    assert.equal(failures.size, 0);
  });
  test("a circle, a missing step and their dependants are reported; other models load", () => {
    const { rounds, failures } = dependencyOrder(
      new Map([
        ["c1", ["c2"]],
        ["c2", ["c1"]],
        ["onCircle", ["c1"]],
        ["above", ["lacking"]],
        ["aboveAbove", ["above"]],
        ["lacking", ["gone", "a"]],
        ["self", ["self"]],
        ["a", []],
      ]),
    );
    assert.deepEqual(rounds, [["a"]]);
    assert.deepEqual(Object.fromEntries(failures), {
      c1: "circular dependency between ensembles: c1 -> ... -> c2 -> c1",
      c2: "circular dependency between ensembles: c2 -> ... -> c1 -> c2",
      self: "circular dependency between ensembles: self -> ... -> self -> self",
      lacking: "ensemble lacking contains models that are not available or ambiguous: gone",
      onCircle: "circular dependency between ensembles: c1 -> ... -> c2 -> c1",
      above:
        "ensemble 'above' depends on 'lacking' which has no loaded version. Model 'lacking' loading failed with error: ensemble lacking contains models that are not available or ambiguous: gone",
      aboveAbove:
        "ensemble 'aboveAbove' depends on 'above' which has no loaded version. Model 'above' loading failed with error: ensemble 'above' depends on 'lacking' which has no loaded version. Model 'lacking' loading failed with error: ensemble lacking contains models that are not available or ambiguous: gone",
    });
  });
});

suite("a catalog", () => {
  test("finds models, their versions and the files that determine the backend", async (t) => {
    const root = await folder(t, {
      "a/config.pbtxt": `version_policy { latest { num_versions: 2 } } ${io}`,
      "a/1/model.py": "",
      "a/2/model.py": "",
      "a/10/model.onnx": "",
      "a/010/x": "",
      "e/config.pbtxt": ensemble("a"),
      "e/1/": "",
      "README.md": "",
    });
    const found = await catalog(t, [root]).find("a", null);
    assert.deepEqual(found.versions, [
      { version: 2, directory: join(root, "a/2") },
      { version: 10, directory: join(root, "a/10") },
    ]);
    assert.equal(found.config.backend, "onnxruntime");
    assert.deepEqual(await catalog(t, [root]).names(), [
      { name: "a", duplicate: false },
      { name: "e", duplicate: false },
    ]);
    assert.deepEqual(composingModels((await catalog(t, [root]).find("e", null)).config), ["a"]);
  });

  test("reports directories that look like versions, or every directory if there is no version, up to eight", async (t) => {
    const root = await folder(t, {
      "some/1/model.py": "",
      "some/v2/": "",
      "some/configs/": "",
      "none/version_1/model.py": "",
      "none/latest/": "",
      ...Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`many/v${at}/`, ""])),
    });
    for (const name of ["some", "none", "many"])
      await writeFile(join(root, name, "config.pbtxt"), `backend: "python" ${io}`);
    const misnamed = async (name: string) => (await catalog(t, [root]).find(name, null)).misnamedVersions.toSorted();
    assert.deepEqual(await misnamed("some"), ["v2"]);
    assert.deepEqual(await misnamed("none"), ["latest", "version_1"]);
    assert.equal((await misnamed("many")).length, 8);
  });

  test("rejects a model that is in two repositories, in none, without a version, or outside the repository", async (t) => {
    const one = await folder(t, {
      "a/1/model.py": "",
      "empty/": "",
      "b/1/model.py": "",
      "unserved/1/model.py": "",
      "unserved/config.pbtxt": 'backend: "python" version_policy { specific { versions: 9 } }',
    });
    const two = await folder(t, { "a/1/model.py": "" });
    const both = catalog(t, [one, two]);
    assert.deepEqual(await both.names(), [
      { name: "a", duplicate: true },
      { name: "b", duplicate: false },
      { name: "empty", duplicate: false },
      { name: "unserved", duplicate: false },
    ]);
    await assert.rejects(both.find("a", null), {
      code: "NOT_FOUND",
      message: "model appears in two or more repositories",
    });
    await assert.rejects(both.find("zzz", null), { code: "NOT_FOUND" });
    await assert.rejects(both.find("../a", null), {
      message: "invalid model name '../a', model name must not contain path traversal characters",
    });
    await assert.rejects(both.find("", null), {
      message: "Model name cannot be empty. Please enter a valid name to deploy.",
    });
    await assert.rejects(both.find("empty", null), /Could not determine backend/);
    assert.deepEqual((await both.find("unserved", null)).versions, []);
  });

  test("a repository that is given twice counts once", async (t) => {
    const root = await folder(t, { "a/1/model.py": "" });
    const twice = catalog(t, [root, root]);
    assert.deepEqual(await twice.names(), [{ name: "a", duplicate: false }]);
    assert.equal((await twice.find("a", null)).config.backend, "python");
  });

  test("prefers the named configuration and falls back to config.pbtxt", async (t) => {
    const root = await folder(t, {
      "a/config.pbtxt": "max_batch_size: 1",
      "a/configs/big.pbtxt": "max_batch_size: 64",
      "a/1/model.py": "",
      "b/config.pbtxt": "max_batch_size: 2",
      "b/1/model.py": "",
    });
    const big = catalog(t, [root], { configName: "big" });
    assert.equal((await big.find("a", null)).config.maxBatchSize, 64);
    assert.equal((await big.find("b", null)).config.maxBatchSize, 2);
  });

  test("serves a mapped directory under another name, and other directories under their own", async (t) => {
    const root = await folder(t, { "e/config.pbtxt": `name: "e" ${ensemble("a")}`, "e/1/": "", "a/1/model.py": "" });
    const mapped = catalog(t, [root], { mapping: { directoryName: "e", servedName: "tenant.tar.gz" } });
    assert.equal((await mapped.find("tenant.tar.gz", null)).config.name, "tenant.tar.gz");
    assert.equal((await mapped.find("a", null)).config.backend, "python");
    await assert.rejects(mapped.find("e", null), { code: "NOT_FOUND" });
  });

  test("a mapped directory may be configured under any name, other directories only under their own", async (t) => {
    const another = 'name: "another"';
    const root = await folder(t, {
      "e/config.pbtxt": `${another} ${ensemble("a")}`,
      "e/1/": "",
      "a/config.pbtxt": another,
      "a/1/model.py": "",
    });
    for (const servedName of ["tenant.tar.gz", "e"]) {
      const mapped = catalog(t, [root], { mapping: { directoryName: "e", servedName } });
      assert.equal((await mapped.find(servedName, null)).config.name, servedName);
      await assert.rejects(mapped.find("a", null), /unexpected directory name 'a' for model 'another'/);
    }
  });

  test("an override replaces the configuration; its files replace the directory and are removed with the catalog", async (t) => {
    const root = await folder(t, { "a/config.pbtxt": "max_batch_size: 1", "a/1/model.py": "" });
    const found = catalog(t, [root]);
    const config = await found.find("a", { configJson: '{"max_batch_size": 3}', files: new Map() });
    assert.equal(config.config.maxBatchSize, 3);
    const files = new Map([["7/model.py", new TextEncoder().encode("# made")]]);
    const created = await found.find("a", { configJson: "{}", files });
    assert.equal(created.versions[0]?.version, 7);
    assert.equal(await readFile(join(created.modelDirectory, "7/model.py"), "utf8"), "# made");
    await assert.rejects(found.find("a", { configJson: null, files }), {
      message: "Load parameter 'config' must be specified for model file override",
    });
    await assert.rejects(found.find("a", { configJson: "{}", files: new Map([["1/../../x", new Uint8Array()]]) }), {
      message: "Invalid file parameter 'file:1/../../x' with normalized path '../x' must stay within model directory.",
    });
    await found[Symbol.asyncDispose]();
    assert.deepEqual(await readdir(`${root}-overrides`), []);
    await rm(`${root}-overrides`, { recursive: true });
  });

  test("files of load requests stay within the disk limit, and those of a failed load are removed", async (t) => {
    const root = await folder(t, { "a/config.pbtxt": "" });
    const found = catalog(t, [root], { overrideBytesMax: 100_000 });
    const load = (name: string, configJson: string, byteLength: number) =>
      found.find(name, { configJson, files: new Map([["1/model.py", new Uint8Array(byteLength)]]) });
    for (let tick = 0; tick < 5; tick++) await assert.rejects(load(`broken${tick}`, "{", 50_000));
    assert.deepEqual(await readdir(`${root}-overrides`), []);
    await load("a", "{}", 50_000);
    await assert.rejects(load("b", "{}", 50_000), {
      code: "UNAVAILABLE",
      message:
        /^the 'file:' parameters of the load of 'b' take 58192 bytes of disk, and 58192 of 100000 bytes for such files are in use; /,
    });
    await load("b", "{}", 10_000);
    assert.equal((await readdir(`${root}-overrides`)).length, 2);
    await found[Symbol.asyncDispose]();
    await rm(`${root}-overrides`, { recursive: true });
  });

  test("follows links to model directories", async (t) => {
    const root = await folder(t, { "real/1/model.py": "" });
    await symlink(join(root, "real"), join(root, "linked"));
    assert.equal((await catalog(t, [root]).find("linked", null)).config.backend, "python");
  });
});

suite("the model of an archive", () => {
  test("is the ensemble that no other uses, whatever the order on disk", async (t) => {
    const root = await folder(t, {
      "z/1/model.py": "",
      "outer/config.pbtxt": ensemble("inner"),
      "inner/config.pbtxt": ensemble("z"),
      ".git/x": "",
      "__MACOSX/x": "",
    });
    assert.deepEqual(await findArchiveModel(root), { repositoryDirectory: root, modelDirectoryName: "outer" });
  });
  test("is the archive itself when its configuration or versions lie directly inside", async (t) => {
    for (const files of [
      { "config.pbtxt": "", "1/model.py": "" },
      { "1/model.py": "", "2/model.py": "" },
    ]) {
      const root = await folder(t, files);
      assert.deepEqual(await findArchiveModel(root), {
        repositoryDirectory: dirname(root),
        modelDirectoryName: basename(root),
      });
    }
  });
  test("is the only directory", async (t) => {
    const root = await folder(t, { "m/1/model.py": "" });
    assert.equal((await findArchiveModel(root)).modelDirectoryName, "m");
  });
  test("is not guessed", () => {
    const model = (directoryName: string, steps: readonly string[] | null = null) => ({ directoryName, steps });
    assert.throws(() => chooseArchiveModel([model("b"), model("a")]), {
      message: "the archive contains several models and no ensemble that determines which one is served: a, b",
    });
    assert.throws(() => chooseArchiveModel([model("e", ["m"]), model("f", ["m"]), model("m")]), {
      message: "the archive contains several ensembles, none of which uses the others: e, f",
    });
    assert.throws(() => chooseArchiveModel([]), {
      code: "INVALID_ARG",
      message: "the archive contains no model directory",
    });
  });
});

test("validation reports every problem of a repository with its location, and none for a valid one", async (t) => {
  const good = await folder(t, {
    "a/config.pbtxt": io,
    "a/1/model.py": "",
    "e/config.pbtxt": ensemble("a"),
    "e/1/": "",
  });
  const noCheck: BackendCheck = ({ config }) => Promise.resolve({ problems: [], completion: config });
  assert.deepEqual(await validateRepository(good, noCheck, { gpuCount: 0 }), { modelCount: 2, problems: [] });
  const root = await folder(t, {
    "typo/config.pbtxt": 'max_bach_size: 8\ninput { dims: "x" }',
    "typo/1/model.py": "",
    "batch/config.pbtxt": `max_batch_size: 4\ndynamic_batching { preferred_batch_size: 9 }\n${io}\nmodel_repository_agents { agents { name: "a" } }`,
    "batch/1/model.py": "",
    "batch/01/": "",
    "none/config.pbtxt": `backend: "python" version_policy { specific { versions: 9 } } ${io}`,
    "none/1/model.py": "",
    "e/config.pbtxt": ensemble("gone"),
    "e/1/": "",
    "broken/config.pbtxt": ensemble("batch"),
    "broken/1/": "",
    "sound/config.pbtxt": `max_batch_size: 4 ${io}`,
    "sound/1/model.py": "",
    "shape/config.pbtxt": ensemble("sound").replace("dims: 4", "dims: 5"),
    "shape/1/": "",
  });
  const { problems } = await validateRepository(root, noCheck, { gpuCount: 0 });
  assert.deepEqual(
    problems.map(
      ({ file, line, column, severity, message }) =>
        `${basename(dirname(file))}:${line}:${column} ${severity} ${message.replaceAll(root, "")}`,
    ),
    [
      "batch:1:1 warning directory '01' is ignored: its name is not a version number (digits without leading zeros)",
      "batch:1:1 error dynamic batching preferred size must be <= max batch size for batch",
      "batch:4:1 error 'model_repository_agents' is not supported by this server yet; the model would not be loaded",
      "none:1:1 error at least one version must be available under the version policy of model 'none'",
      "typo:1:1 error unknown field 'max_bach_size' in ModelConfig; did you mean 'max_batch_size'?",
      `typo:2:15 error field 'input[0].dims[0]': expected an integer, found string "x"`,
      "e:1:1 error ensemble e contains models that are not available or ambiguous: gone",
      "broken:1:162 error ensemble broken contains models that are not available or ambiguous: batch\nfailed to load 'batch', failed to poll from model repository: dynamic batching preferred size must be <= max batch size for batch",
      "shape:1:1 error in ensemble shape, ensemble tensor X: inconsistent shape: [5] is inferred from model shape while [-1,4] is inferred from model sound",
    ],
  );
});

test("a path that is no repository is rejected with what to give instead", async (t) => {
  const root = await folder(t, {
    "models/a/config.pbtxt": "",
    "models/a/1/model.py": "",
    "numbered/1/1/model.py": "",
    "stray/config.pbtxt": "",
    "stray/b/1/model.py": "",
    "empty/": "",
    file: "",
  });
  const told = async (path: string) => (await checkRepositoryPath(path))?.replaceAll(root, "");
  for (const good of ["models", "numbered", "stray", "empty"])
    assert.equal(await told(join(root, good)), undefined, good);
  assert.equal(
    await told(join(root, "models/a")),
    "Invalid argument - '/models/a' is a model, not a model repository; give its parent directory '/models'",
  );
  assert.match((await told(join(root, "numbered/1")))!, /'\/numbered\/1' is a model, .* '\/numbered'$/);
  assert.equal(await told(join(root, "gone")), "Internal - failed to stat file /gone: No such file or directory");
  assert.equal(
    await told(join(root, "file")),
    "Invalid argument - repository path is not a valid directory: '/file' is a file",
  );
  for (const [address, store] of [
    ["s3://bucket/models", "S3"],
    ["gs://bucket", "Google Cloud Storage"],
    ["as://account/container", "Azure Storage"],
  ] as const)
    assert.equal(
      await told(address),
      `Unsupported - model repositories in ${store} are not supported: copy '${address}' to a local directory and give that`,
    );
});
