/** Writes bundles with MLeap's own serializer, transforms rows with them, and prints all of it as JSON: see README.md beside this file. */
import java.io.File
import java.net.URI
import java.nio.file.Files
import ml.combust.bundle.BundleFile
import ml.combust.bundle.serializer.SerializationFormat
import ml.combust.mleap.core.types._
import ml.combust.mleap.core.feature._
import ml.combust.mleap.core.classification._
import ml.combust.mleap.core.regression._
import ml.combust.mleap.core.clustering._
import ml.combust.mleap.core.tree._
import ml.combust.mleap.runtime.MleapSupport._
import ml.combust.mleap.runtime.frame.{DefaultLeapFrame, Row, Transformer}
import ml.combust.mleap.runtime.transformer.{Pipeline, PipelineModel}
import ml.combust.mleap.runtime.transformer.feature._
import ml.combust.mleap.runtime.transformer.classification._
import ml.combust.mleap.runtime.transformer.regression._
import ml.combust.mleap.runtime.transformer.clustering._
import ml.combust.mleap.tensor.Tensor
import org.apache.spark.ml.linalg.{Vectors, DenseMatrix, Matrices}
import scala.util.{Try, Success, Failure, Random}
import spray.json._

object Bundles {
  val out = new StringBuilder
  val directory: File = Files.createTempDirectory("bundles").toFile
  val rnd = new Random(11)
  def g(n: Int): Array[Double] = Array.fill(n)(math.round(rnd.nextGaussian() * 1000) / 1000.0)
  def sh(ins: Seq[(String, String)], outs: Seq[(String, String)]): NodeShape = {
    var s = NodeShape()
    ins.foreach { case (p, n) => s = s.withInput(p, n) }
    outs.foreach { case (p, n) => s = s.withOutput(p, n) }
    s
  }
  def io(i: String, o: String): NodeShape = sh(Seq("input" -> i), Seq("output" -> o))
  def json(v: Any): String = v match {
    case null => "null"
    case s: String => JsString(s).compactPrint
    case t: Tensor[_] => t.toDense.rawValuesIterator.map(json).mkString("[", ",", "]")
    case s: Seq[_] => s.map(json).mkString("[", ",", "]")
    case d: Double if d.isNaN || d.isInfinite => json(d.toString)
    case x => x.toString
  }
  def name(t: DataType) = t match {
    case ScalarType(b, _) => (b.toString, "basic")
    case TensorType(b, _, _) => (b.toString, "vector")
    case ListType(b, _) => (b.toString, "array")
    case _ => ("?", "?")
  }
  def files(d: File, prefix: String): Seq[(String, String)] = d.listFiles().toSeq.sortBy(_.getName).flatMap { f =>
    if (f.isDirectory) files(f, prefix + f.getName + "/") else Seq((prefix + f.getName, new String(Files.readAllBytes(f.toPath), "UTF-8")))
  }
  def bundle(name: String, schema: Seq[(String, DataType)], stages: Seq[Transformer], outputs: Seq[String], rows: Seq[Seq[Any]]): Unit = {
    val p = Pipeline(uid = "pipeline", shape = NodeShape(), model = PipelineModel(stages))
    val dir = new File(directory, name)
    dir.mkdirs()
    val bf = BundleFile(new URI("file:" + dir.getPath))
    p.writeBundle.format(SerializationFormat.Json).save(bf).get
    bf.close()
    // MLeap 0.20.0 reads trees under the name that Spark gives them, and writes them itself under another.
    def ren(f: File): Unit = { if (f.getName == "nodes.json") f.renameTo(new File(f.getParentFile, "tree.json")); Option(f.listFiles).foreach(_.foreach(ren)) }
    ren(dir)
    val bf2 = BundleFile(new URI("file:" + dir.getPath))
    val loaded = bf2.loadMleapBundle().get.root
    bf2.close()
    val st = StructType(schema.map { case (n, t) => StructField(n, t) }).get
    val results = rows.map { r =>
      Try {
        val f = loaded.transform(DefaultLeapFrame(st, Seq(Row(r: _*)))).get
        val sel = f.select(outputs: _*).get
        val row = sel.collect().head
        row.toSeq.map(json).mkString("[", ",", "]")
      } match { case Success(s) => s; case Failure(e) => "{\"error\":" + json(String.valueOf(e.getMessage).split("\n").head) + "}" }
    }
    val outTypes = { val full = Try(loaded.transform(DefaultLeapFrame(st, Seq(Row(rows.head: _*)))).get.schema).get; outputs.map(o => full.getField(o).get.dataType) }
    def col(n: String, t: DataType) = { val (b, s) = this.name(t); s"""{"name":"$n","type":"$b","struct":"$s"}""" }
    out.append(s"""{"name":"$name","input":[${schema.map { case (n, t) => col(n, t) }.mkString(",")}],"outputs":[${outputs.zip(outTypes).map { case (n, t) => col(n, t) }.mkString(",")}],"rows":[${rows.map(json(_)).mkString(",")}],"answers":[${results.mkString(",")}],"files":{${files(dir, "").map { case (n, c) => json(n) + ":" + json(compact(n, c)) }.mkString(",")}}},\n""")
  }
  /** MLeap prints trees a node a line, and all else over many lines. */
  def compact(path: String, text: String) =
    if (path == "bundle.json") JsObject(text.parseJson.asJsObject.fields.filterKeys(Set("format", "name", "version"))).compactPrint
    else if (path.endsWith("tree.json")) text
    else text.parseJson.compactPrint
  def vec(n: Int): Tensor[Double] = Tensor.denseVector(g(n))
  def tree(depth: Int, features: Int, leaf: () => Seq[Double]): Node =
    if (depth == 0) LeafNode(leaf()) else {
      val f = rnd.nextInt(features)
      val split: Split = if (rnd.nextInt(4) == 0) CategoricalSplit(f, 4, Array(0.0, 2.0), rnd.nextBoolean()) else ContinuousSplit(f, g(1)(0))
      InternalNode(tree(depth - 1, features, leaf), tree(if (depth > 1 && rnd.nextBoolean()) depth - 2 else depth - 1, features, leaf), split)
    }
  def rtree(): DecisionTreeRegressionModel = DecisionTreeRegressionModel(tree(4, 5, () => g(1)), 5)
  def ctree(): DecisionTreeClassifierModel = DecisionTreeClassifierModel(tree(4, 5, () => Seq.fill(3)(rnd.nextInt(20).toDouble)), 5, 3)
  val five = Seq("features" -> (TensorType.Double(5): DataType))
  def fives = Seq.fill(12)(Seq(Tensor.denseVector(Array.tabulate(5)(i => if (i < 2) rnd.nextInt(4).toDouble else g(1)(0)))))
  val reg = sh(Seq("features" -> "features"), Seq("prediction" -> "prediction"))
  val cls = sh(Seq("features" -> "features"), Seq("raw_prediction" -> "raw", "probability" -> "probability", "prediction" -> "prediction"))
  val clsRaw = sh(Seq("features" -> "features"), Seq("raw_prediction" -> "raw", "prediction" -> "prediction"))
  val clsOne = sh(Seq("features" -> "features"), Seq("prediction" -> "prediction"))

  def main(a: Array[String]): Unit = {
    val D = ScalarType.Double; val S = ScalarType.String; val I = ScalarType.Int
    // Spark ML example of abalone: a string, seven doubles.
    val names = Seq("length", "diameter", "height", "whole_weight", "shucked_weight", "viscera_weight", "shell_weight")
    bundle("abalone", ("sex" -> S) +: names.map(_ -> (D: DataType)), Seq(
      StringIndexer("string_indexer", io("sex", "indexed_sex"), StringIndexerModel(Seq("M", "F", "I"))),
      OneHotEncoder("one_hot", sh(Seq("input0" -> "indexed_sex"), Seq("output0" -> "sex_vec")), OneHotEncoderModel(Array(3), HandleInvalid.Error, true)) ,
      VectorAssembler("assembler", sh(("sex_vec" +: names).zipWithIndex.map { case (n, i) => s"input$i" -> n }, Seq("output" -> "features")),
        VectorAssemblerModel(TensorShape(2) +: names.map(_ => ScalarShape()))),
      StandardScaler("scaler", io("features", "scaled"), StandardScalerModel(Some(Vectors.dense(g(9).map(_.abs + 0.1))), Some(Vectors.dense(g(9))))),
      LinearRegression("lr", sh(Seq("features" -> "scaled"), Seq("prediction" -> "rings")), LinearRegressionModel(Vectors.dense(g(9)), 3.25))
    ), Seq("indexed_sex", "sex_vec", "features", "scaled", "rings"),
      Seq("M", "F", "I", "X").map(s => s +: g(7).toSeq) :+ (null +: g(7).toSeq) :+ ("M" +: Seq(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)))
    bundle("indexers", Seq("a" -> S, "b" -> I, "c" -> D), Seq(
      StringIndexer("keep", io("a", "ai"), StringIndexerModel(Seq("x", "y"), HandleInvalid.Keep)),
      StringIndexer("skip", io("b", "bi"), StringIndexerModel(Seq("1", "22"), HandleInvalid.Skip)),
      StringIndexer("doubles", io("c", "ci"), StringIndexerModel(Seq("1.0", "1.0E-5", "0.001", "1.0E7", "123456.75", "NaN"), HandleInvalid.Keep)),
      ReverseStringIndexer("reverse", io("ai", "again"), ReverseStringIndexerModel(Seq("x", "y", "?"))),
      OneHotEncoder("ohe1", sh(Seq("input0" -> "ai"), Seq("output0" -> "o1")), OneHotEncoderModel(Array(2), HandleInvalid.Keep, true)),
      OneHotEncoder("ohe2", sh(Seq("input0" -> "ai"), Seq("output0" -> "o2")), OneHotEncoderModel(Array(2), HandleInvalid.Keep, false)),
      OneHotEncoder("ohe3", sh(Seq("input0" -> "bi"), Seq("output0" -> "o3")), OneHotEncoderModel(Array(2), HandleInvalid.Error, false))
    ), Seq("ai", "bi", "ci", "again", "o1", "o2", "o3"), Seq(Seq("x", 1, 1.0), Seq("y", 22, 1e-5), Seq("z", 1, 0.001), Seq(null, 1, 1e7), Seq("x", 3, 1.0), Seq("x", 22, 123456.75), Seq("x", 1, Double.NaN)))
    bundle("buckets", Seq("d" -> D, "s" -> S), Seq(
      Imputer("imputer", io("d", "di"), ImputerModel(4.5, -1.0, "mean")),
      Bucketizer("open", io("di", "b1"), BucketizerModel(Array(Double.NegativeInfinity, -1.5, 0.0, 2.0, Double.PositiveInfinity))),
      Bucketizer("closed", io("di", "b2"), BucketizerModel(Array(-10.0, 0.0, 5.0), HandleInvalid.Keep)),
      Binarizer("binarizer", io("di", "b3"), BinarizerModel(0.25, ScalarShape()))
    ), Seq("di", "b1", "b2", "b3"), Seq[Any](0.0, 5.0, -1.0, Double.NaN, 2.0, -1.5, 0.25, 5.5, -10.0, -10.5, null).map(d => Seq(d, "x")))
    val v3 = Seq("v" -> (TensorType.Double(3): DataType))
    bundle("scalers", v3, Seq(
      StandardScaler("std", io("v", "s1"), StandardScalerModel(Some(Vectors.dense(2.0, 0.0, 0.5)), None)),
      StandardScaler("mean", io("v", "s2"), StandardScalerModel(None, Some(Vectors.dense(1.0, 2.0, 3.0)))),
      StandardScaler("both", io("v", "s3"), StandardScalerModel(Some(Vectors.dense(2.0, 0.0, 0.5)), Some(Vectors.dense(1.0, 2.0, 3.0)))),
      MinMaxScaler("mm", io("v", "s4"), MinMaxScalerModel(Vectors.dense(-1.0, 2.0, 0.0), Vectors.dense(1.0, 2.0, 10.0))),
      MinMaxScaler("mm2", io("v", "s5"), MinMaxScalerModel(Vectors.dense(-1.0, 2.0, 0.0), Vectors.dense(1.0, 2.0, 10.0), -2.0, 3.0)),
      MaxAbsScaler("ma", io("v", "s6"), MaxAbsScalerModel(Vectors.dense(2.0, 0.0, 4.0))),
      Normalizer("n1", io("v", "s7"), NormalizerModel(1.0, 3)),
      Normalizer("n2", io("v", "s8"), NormalizerModel(2.0, 3)),
      Normalizer("n3", io("v", "s9"), NormalizerModel(3.0, 3)),
      ElementwiseProduct("ep", io("v", "s10"), ElementwiseProductModel(Vectors.dense(2.0, -1.0, 0.0))),
      Pca("pca", io("v", "s11"), PcaModel(new DenseMatrix(3, 2, g(6)))),
      VectorSlicer("slice", io("v", "s12"), VectorSlicerModel(Array(2), Array("x" -> 0), 3)),
      ChiSqSelector("chi", io("v", "s13"), ChiSqSelectorModel(Seq(0, 2), 3)),
      Binarizer("bin", io("v", "s14"), BinarizerModel(0.5, TensorShape(3))),
      KMeans("km", sh(Seq("features" -> "v"), Seq("prediction" -> "k")), KMeansModel(Array(Vectors.dense(0, 0, 0), Vectors.dense(1, 2, 3), Vectors.dense(-3, 0, 1)), 3))
    ), (1 to 14).map("s" + _) :+ "k", Seq.fill(4)(Seq(vec(3))) :+ Seq(Tensor.denseVector(Array(0.0, 0.0, 0.0))))
    bundle("indexed-vectors", v3, Seq(
      VectorIndexer("vi", io("v", "o"), VectorIndexerModel(3, Map(0 -> Map(0.0 -> 0, -1.0 -> 1), 2 -> Map(0.0 -> 0, 5.0 -> 1)))),
      VectorIndexer("vk", io("v", "k"), VectorIndexerModel(3, Map(0 -> Map(0.0 -> 0, -1.0 -> 1)), HandleInvalid.Keep))
    ), Seq("o", "k"), Seq(Seq(Tensor.denseVector(Array(-1.0, 7.5, 5.0))), Seq(Tensor.denseVector(Array(0.0, 0.0, 0.0))), Seq(Tensor.denseVector(Array(3.0, 0.0, 0.0)))))
    bundle("words", Seq("t" -> S), Seq(
      Tokenizer("tok", io("t", "w"), TokenizerModel.defaultTokenizer),
      StopWordsRemover("stop", io("w", "w2"), StopWordsRemoverModel(Seq("the", "A"), false)),
      NGram("ng", io("w2", "n"), NGramModel(2)),
      HashingTermFrequency("tf", io("w2", "tf"), HashingTermFrequencyModel(16, false, 2)),
      HashingTermFrequency("tf1", io("w2", "tf1"), HashingTermFrequencyModel(16, true, 1)),
      IDF("idf", io("tf", "idf"), IDFModel(Vectors.dense(g(16)))),
      CountVectorizer("cv", io("w2", "cv"), CountVectorizerModel(Array("spark", "fox", "b"), false, 1.0)),
      CountVectorizer("cv2", io("w2", "cv2"), CountVectorizerModel(Array("spark", "fox", "b"), true, 0.3)),
      RegexTokenizer("rt", io("t", "r"), RegexTokenizerModel("\\W+".r, true, 2, true)),
      RegexTokenizer("rm", io("t", "m"), RegexTokenizerModel("[a-z\\d]+".r, false, 1, false))
    ), Seq("w", "w2", "n", "tf", "tf1", "idf", "cv", "cv2", "r", "m"), Seq("The quick fox spark spark", "a  b\tc ", "", " lead", "Ünïcode straße fox the", "x1 y22 z-333 fox fox").map(t => Seq(t)))
    bundle("trees", five, Seq(
      DecisionTreeRegression("dt", sh(Seq("features" -> "features"), Seq("prediction" -> "p1")), rtree()),
      RandomForestRegression("rf", sh(Seq("features" -> "features"), Seq("prediction" -> "p2")), RandomForestRegressionModel(Seq.fill(5)(rtree()), Seq.fill(5)(1.0), 5)),
      GBTRegression("gbt", sh(Seq("features" -> "features"), Seq("prediction" -> "p3")), GBTRegressionModel(Seq.fill(5)(rtree()), g(5), 5))
    ), Seq("p1", "p2", "p3"), fives)
    def c(n: String, t: Transformer, outs: Seq[String]) = bundle(n, five, Seq(t), outs, fives)
    val all = Seq("raw", "probability", "prediction")
    c("tree-classifier", DecisionTreeClassifier("m", cls, ctree()), all)
    c("tree-classifier-thresholds", DecisionTreeClassifier("m", clsRaw, ctree().copy(thresholds = Some(Array(0.2, 0.7, 0.1)))), Seq("raw", "prediction"))
    c("forest-classifier", RandomForestClassifier("m", cls, RandomForestClassifierModel(Seq.fill(7)(ctree()), Seq.fill(7)(1.0), 5, 3)), all)
    c("forest-classifier-one", RandomForestClassifier("m", clsOne, RandomForestClassifierModel(Seq.fill(7)(ctree()), Seq.fill(7)(1.0), 5, 3, Some(Array(0.0, 0.5, 0.5)))), Seq("prediction"))
    c("gbt-classifier", GBTClassifier("m", cls, GBTClassifierModel(Seq.fill(6)(rtree()), g(6), 5)), all)
    c("gbt-classifier-raw", GBTClassifier("m", clsRaw, GBTClassifierModel(Seq.fill(6)(rtree()), g(6), 5)), Seq("raw", "prediction"))
    c("logistic", LogisticRegression("m", cls, LogisticRegressionModel(BinaryLogisticRegressionModel(Vectors.dense(g(5)), 0.0, 0.3))), all)
    c("logistic-raw", LogisticRegression("m", clsRaw, LogisticRegressionModel(BinaryLogisticRegressionModel(Vectors.dense(g(5)), -0.5, 0.8))), Seq("raw", "prediction"))
    c("multinomial", LogisticRegression("m", cls, LogisticRegressionModel(ProbabilisticLogisticsRegressionModel(Matrices.dense(3, 5, g(15)), Vectors.dense(g(3)), None))), all)
    c("multinomial-thresholds", LogisticRegression("m", clsRaw, LogisticRegressionModel(ProbabilisticLogisticsRegressionModel(Matrices.dense(3, 5, g(15)), Vectors.dense(g(3)), Some(Array(0.1, 0.6, 0.3))))), Seq("raw", "prediction"))
    println("[\n" + out.toString.stripSuffix(",\n") + "\n]")
  }
}
